//! What happens with memory, for whoever counts it.

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryEvent {
    /// Something was recalled in time.
    Recalled,
    /// There was nothing to recall.
    Nothing,
    /// Nothing came in time.
    Late,
    /// The search before it still runs.
    Busy,
    /// A search failed.
    NotFound,
    /// A turn was written down.
    Synced,
    /// What was folded was written down.
    Offered,
    /// Something could not be written down.
    NotWritten,
    /// There was too much to do.
    Dropped,
}

impl MemoryEvent {
    /// Every one.
    pub const ALL: [MemoryEvent; 9] = [
        MemoryEvent::Recalled,
        MemoryEvent::Nothing,
        MemoryEvent::Late,
        MemoryEvent::Busy,
        MemoryEvent::NotFound,
        MemoryEvent::Synced,
        MemoryEvent::Offered,
        MemoryEvent::NotWritten,
        MemoryEvent::Dropped,
    ];

    /// Its name, as counters have it.
    pub fn name(self) -> &'static str {
        match self {
            MemoryEvent::Recalled => "recalled",
            MemoryEvent::Nothing => "nothing",
            MemoryEvent::Late => "late",
            MemoryEvent::Busy => "busy",
            MemoryEvent::NotFound => "not_found",
            MemoryEvent::Synced => "synced",
            MemoryEvent::Offered => "offered",
            MemoryEvent::NotWritten => "not_written",
            MemoryEvent::Dropped => "dropped",
        }
    }
}
