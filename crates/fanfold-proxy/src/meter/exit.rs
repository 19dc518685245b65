//! How requests end.

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Exit {
    /// The client received the whole answer.
    Done,
    /// The client closed the connection early.
    ClientGone,
    /// The provider could not be reached.
    Unreachable,
    /// The provider sent nothing for too long.
    Stalled,
    /// The provider closed the connection early.
    BrokenOff,
}

impl Exit {
    /// The name in metric labels and log lines.
    pub fn name(self) -> &'static str {
        match self {
            Exit::Done => "done",
            Exit::ClientGone => "client_gone",
            Exit::Unreachable => "unreachable",
            Exit::Stalled => "stalled",
            Exit::BrokenOff => "broken_off",
        }
    }
}
