//! Checks whether a provider accepts a list of messages, and compares it with the previous one.

use crate::content::analysis::RecordAnalysis;
use crate::content::contents::{ContentId, MessageContent};
use crate::content::message::ChatRole;

/// True if a provider would accept these messages: the first one is the user's, and each call is followed by its
/// result.
pub(crate) fn is_valid(analysis: &RecordAnalysis<'_>, sent: &[ContentId]) -> bool {
    let content = |at: usize| -> &MessageContent { &analysis.contents[sent[at]] };
    let first = (0..sent.len()).map(content).find(|content| content.role != ChatRole::System);
    if first.is_none_or(|first| first.role != ChatRole::User) {
        return false;
    }
    let mut i = 0;
    let mut answered = Vec::new();
    while i < sent.len() {
        let message = content(i);
        i += 1;
        if message.role == ChatRole::Tool {
            return false;
        }
        if message.role != ChatRole::Assistant || message.calls.is_empty() {
            continue;
        }
        answered.clear();
        while i < sent.len() && content(i).role == ChatRole::Tool {
            answered.push(content(i).answers);
            i += 1;
        }
        answered.sort_unstable();
        let expected = message.calls.iter().map(|id| Some(*id));
        if !expected.eq(answered.iter().copied()) {
            return false;
        }
    }
    true
}

/// The number of equal messages at the start.
pub(crate) fn n_shared(before: &[ContentId], now: &[ContentId]) -> usize {
    before.iter().zip(now).take_while(|(a, b)| a == b).count()
}
