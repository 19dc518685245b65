//! What happens with memory, for whoever counts it.

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
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

impl Deed {
    /// Every one.
    pub const ALL: [Deed; 9] = [
        Deed::Recalled,
        Deed::Nothing,
        Deed::Late,
        Deed::Busy,
        Deed::NotFound,
        Deed::Synced,
        Deed::Offered,
        Deed::NotWritten,
        Deed::Dropped,
    ];

    /// Its name, as counters have it.
    pub fn name(self) -> &'static str {
        match self {
            Deed::Recalled => "recalled",
            Deed::Nothing => "nothing",
            Deed::Late => "late",
            Deed::Busy => "busy",
            Deed::NotFound => "not_found",
            Deed::Synced => "synced",
            Deed::Offered => "offered",
            Deed::NotWritten => "not_written",
            Deed::Dropped => "dropped",
        }
    }
}
