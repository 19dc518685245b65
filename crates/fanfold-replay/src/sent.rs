//! What was sent, message by message: whether a provider takes it, and how much of it is as before.

use crate::looks::{Look, LookId};
use crate::message::Role;
use crate::trajectory::Trajectory;

/// Whether a provider would take these messages: a user speaks first, and each call is followed by its result.
pub(crate) fn is_valid(trajectory: &Trajectory<'_>, sent: &[LookId]) -> bool {
    let look = |at: usize| -> &Look { &trajectory.looks[sent[at]] };
    let first = (0..sent.len()).map(look).find(|look| look.role != Role::System);
    if first.is_none_or(|first| first.role != Role::User) {
        return false;
    }
    let mut i = 0;
    let mut answered = Vec::new();
    while i < sent.len() {
        let message = look(i);
        i += 1;
        if message.role == Role::Tool {
            return false;
        }
        if message.role != Role::Assistant || message.calls.is_empty() {
            continue;
        }
        answered.clear();
        while i < sent.len() && look(i).role == Role::Tool {
            answered.push(look(i).answers);
            i += 1;
        }
        answered.sort_unstable();
        let wanted = message.calls.iter().map(|id| Some(*id));
        if !wanted.eq(answered.iter().copied()) {
            return false;
        }
    }
    true
}

/// How many messages, from the first on, are the same.
pub(crate) fn n_shared(before: &[LookId], now: &[LookId]) -> usize {
    before.iter().zip(now).take_while(|(a, b)| a == b).count()
}
