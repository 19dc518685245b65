//! Events of memory, for counters.

/// An event of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemoryEvent {
    /// A search found something in time.
    Recalled,
    /// A search found nothing.
    NoMatch,
    /// A search did not finish in time.
    Late,
    /// No search was started, since the previous one is still running.
    Busy,
    /// A search failed.
    SearchFailed,
    /// A turn was written.
    Synced,
    /// Folded text was written.
    Offered,
    /// A write failed.
    WriteFailed,
    /// The queue was full.
    Dropped,
}

impl MemoryEvent {
    /// All events.
    pub const ALL: [MemoryEvent; 9] = [
        MemoryEvent::Recalled,
        MemoryEvent::NoMatch,
        MemoryEvent::Late,
        MemoryEvent::Busy,
        MemoryEvent::SearchFailed,
        MemoryEvent::Synced,
        MemoryEvent::Offered,
        MemoryEvent::WriteFailed,
        MemoryEvent::Dropped,
    ];

    /// The label of its counter.
    pub fn name(self) -> &'static str {
        match self {
            MemoryEvent::Recalled => "recalled",
            MemoryEvent::NoMatch => "nothing",
            MemoryEvent::Late => "late",
            MemoryEvent::Busy => "busy",
            MemoryEvent::SearchFailed => "not_found",
            MemoryEvent::Synced => "synced",
            MemoryEvent::Offered => "offered",
            MemoryEvent::WriteFailed => "not_written",
            MemoryEvent::Dropped => "dropped",
        }
    }
}
