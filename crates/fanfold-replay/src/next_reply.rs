//! The reply to be replayed next, and the request for it.

use crate::content::contents::ContentId;
use crate::content::trajectory::Trajectory;
use crate::prices::Piece;

/// A reply of the recorded conversation.
pub(crate) struct NextReply {
    /// Its position among the replies.
    pub(crate) n: usize,
    /// The position of its message.
    pub(crate) reply: usize,
    /// Tokens since the previous reply, including that reply.
    pub(crate) new: u64,
    /// The length of the reply, in tokens.
    pub(crate) output: u64,
    /// The time of the request, in seconds.
    pub(crate) at: Option<f64>,
}

impl NextReply {
    pub(crate) fn new(trajectory: &Trajectory<'_>, n: usize) -> NextReply {
        let reply = trajectory.replies[n];
        let before = n.checked_sub(1).map_or(0, |n| trajectory.replies[n]);
        let times = &trajectory.record.times;
        NextReply {
            n,
            reply,
            new: trajectory.before[reply] - trajectory.before[before],
            output: trajectory.before[reply + 1] - trajectory.before[reply],
            at: times.get(reply.saturating_sub(1)).or(times.get(reply)).copied(),
        }
    }
}

/// The pieces of a request: the tool schemas, then the messages.
pub(crate) fn pieces(trajectory: &Trajectory<'_>, contents: &[ContentId]) -> Vec<Piece> {
    let tools = Piece { print: u64::MAX, tokens: trajectory.base };
    let piece = |content: &ContentId| Piece {
        print: u64::from(*content),
        tokens: trajectory.contents[*content].tokens,
    };
    std::iter::once(tools).chain(contents.iter().map(piece)).collect()
}
