//! A moment of a replay: the reply that comes next, and a request as it is charged.

use crate::looks::LookId;
use crate::prices::Piece;
use crate::trajectory::Trajectory;

/// The reply that is about to be written.
pub(crate) struct Moment {
    /// Its position among the replies.
    pub(crate) n: usize,
    /// Its message.
    pub(crate) reply: usize,
    /// What came since the reply before, in tokens, that reply included.
    pub(crate) new: u64,
    /// The reply's own length.
    pub(crate) output: u64,
    /// When it was asked for, in seconds.
    pub(crate) at: Option<f64>,
}

impl Moment {
    pub(crate) fn new(trajectory: &Trajectory<'_>, n: usize) -> Moment {
        let reply = trajectory.replies[n];
        let before = n.checked_sub(1).map_or(0, |n| trajectory.replies[n]);
        let times = &trajectory.record.times;
        Moment {
            n,
            reply,
            new: trajectory.before[reply] - trajectory.before[before],
            output: trajectory.before[reply + 1] - trajectory.before[reply],
            at: times.get(reply.saturating_sub(1)).or(times.get(reply)).copied(),
        }
    }
}

/// A request as it is charged: the tool schemas, then the messages.
pub(crate) fn pieces(trajectory: &Trajectory<'_>, looks: &[LookId]) -> Vec<Piece> {
    let tools = Piece { print: u64::MAX, tokens: trajectory.base };
    let piece = |look: &LookId| Piece { print: u64::from(*look), tokens: trajectory.looks[*look].tokens };
    std::iter::once(tools).chain(looks.iter().map(piece)).collect()
}
