//! Checks whether a provider accepts a list of messages, and compares it with the previous one.

use crate::content::contents::{Content, ContentId};
use crate::content::message::Role;
use crate::content::trajectory::Trajectory;

/// True if a provider would accept these messages: the first one is the user's, and each call is followed by its result.
pub(crate) fn is_valid(trajectory: &Trajectory<'_>, sent: &[ContentId]) -> bool {
    let content = |at: usize| -> &Content { &trajectory.contents[sent[at]] };
    let first = (0..sent.len()).map(content).find(|content| content.role != Role::System);
    if first.is_none_or(|first| first.role != Role::User) {
        return false;
    }
    let mut i = 0;
    let mut answered = Vec::new();
    while i < sent.len() {
        let message = content(i);
        i += 1;
        if message.role == Role::Tool {
            return false;
        }
        if message.role != Role::Assistant || message.calls.is_empty() {
            continue;
        }
        answered.clear();
        while i < sent.len() && content(i).role == Role::Tool {
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
