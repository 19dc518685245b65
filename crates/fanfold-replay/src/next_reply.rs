//! The reply to be replayed next, and the request for it.

use crate::content::analysis::RecordAnalysis;
use crate::content::contents::ContentId;
use crate::prices::RequestPiece;

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
    pub(crate) fn new(analysis: &RecordAnalysis<'_>, n: usize) -> NextReply {
        let reply = analysis.replies[n];
        let before = n.checked_sub(1).map_or(0, |n| analysis.replies[n]);
        let times = &analysis.record.times;
        NextReply {
            n,
            reply,
            new: analysis.before[reply] - analysis.before[before],
            output: analysis.before[reply + 1] - analysis.before[reply],
            at: times.get(reply.saturating_sub(1)).or(times.get(reply)).copied(),
        }
    }
}

/// The pieces of a request: the tool schemas, then the messages.
pub(crate) fn pieces(analysis: &RecordAnalysis<'_>, contents: &[ContentId]) -> Vec<RequestPiece> {
    let tools = RequestPiece { print: u64::MAX, tokens: analysis.base };
    let piece = |content: &ContentId| RequestPiece {
        print: u64::from(*content),
        tokens: analysis.contents[*content].tokens,
    };
    std::iter::once(tools).chain(contents.iter().map(piece)).collect()
}
