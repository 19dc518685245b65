//! Events that are undone: by a restored checkpoint, or because their request had an overflow.
//!
//! Handles of undone folds can still be recalled.

use std::collections::BTreeSet;

use crate::log::events::{LoggedEvent, MoveReason, SessionEvent, TipMove};
use crate::log::session_log::SessionLog;

impl SessionLog {
    /// The indexes of the undone events among the first `n_events`.
    pub(crate) fn undone_events(&self, n_events: usize) -> BTreeSet<usize> {
        let mut undone = BTreeSet::new();
        if !self.may_have_undone {
            return undone;
        }
        // The events that each move undid; a redo removes the last move with its events.
        let mut moves: Vec<Vec<usize>> = Vec::new();
        for (i, logged) in self.events[..n_events].iter().enumerate() {
            match &logged.event {
                SessionEvent::Moved(TipMove { reason: MoveReason::Redone, .. }) => drop(moves.pop()),
                SessionEvent::Moved(TipMove { checkpoint: Some(name), .. }) => {
                    moves.push(self.undone_by_restore(name, i));
                }
                SessionEvent::Moved(_) => moves.push(Vec::new()),
                SessionEvent::SentUnchanged { overflow: true, .. } => {
                    let request = self.start_of_request(i)..i;
                    undone.extend(request.filter(|j| is_request_setting(&self.events[*j].event)));
                }
                _ => {}
            }
        }
        undone.extend(moves.into_iter().flatten());
        undone
    }

    /// The events that are not undone, oldest first, with their indexes.
    pub(crate) fn events_in_force(&self) -> impl Iterator<Item = (usize, &LoggedEvent)> {
        let undone = self.undone_events(self.events.len());
        self.events.iter().enumerate().filter(move |(i, _)| !undone.contains(i))
    }

    /// The events among the first `n_events` that are undone if the newest checkpoint of a name is restored: folds
    /// and their causes since the checkpoint. If fanfold created the checkpoint before a fold, the causes of that
    /// fold are undone as well.
    pub(crate) fn undone_by_restore(&self, checkpoint: &str, n_events: usize) -> Vec<usize> {
        let is_checkpoint = |logged: &LoggedEvent| match &logged.event {
            SessionEvent::Checkpoint { name, .. } => name == checkpoint,
            _ => false,
        };
        let Some(at) = self.events[..n_events].iter().rposition(is_checkpoint) else { return Vec::new() };
        let is_auto = matches!(self.events[at].event, SessionEvent::Checkpoint { auto: true, .. });
        let first = if is_auto { self.start_of_request(at) } else { at };
        let causes_before = (first..at).filter(|i| is_fold_cause(&self.events[*i].event));
        let since = (at..n_events).filter(|i| is_fold_or_cause(&self.events[*i].event));
        causes_before.chain(since).collect()
    }

    /// The index of the first event of the request that recorded an event.
    fn start_of_request(&self, event: usize) -> usize {
        let ends_before = |logged: &LoggedEvent| {
            matches!(
                logged.event,
                SessionEvent::Request(_)
                    | SessionEvent::SentUnchanged { .. }
                    | SessionEvent::Moved(TipMove {
                        reason: MoveReason::Rewound | MoveReason::Redone | MoveReason::Restored,
                        ..
                    })
                    | SessionEvent::Forked { .. }
                    | SessionEvent::Inherited { .. }
                    | SessionEvent::Imported { .. }
            )
        };
        self.events[..event].iter().rposition(ends_before).map_or(0, |last| last + 1)
    }
}

/// Settings that a request changes. They are undone if the request fails.
fn is_request_setting(event: &SessionEvent) -> bool {
    matches!(
        event,
        SessionEvent::NewTerms(_) | SessionEvent::Budget { .. } | SessionEvent::FoldRequested { .. }
    )
}

/// Events that cause a fold.
fn is_fold_cause(event: &SessionEvent) -> bool {
    is_request_setting(event)
        || matches!(
            event,
            SessionEvent::Refused { .. }
                | SessionEvent::CacheExpired { .. }
                | SessionEvent::TokenRatio { at_once: true, .. }
        )
}

/// Folds, their causes and their consequences. Pins, focus and summaries are not among them.
fn is_fold_or_cause(event: &SessionEvent) -> bool {
    is_fold_cause(event)
        || matches!(
            event,
            SessionEvent::TokenRatio { .. }
                | SessionEvent::Unfolded { .. }
                | SessionEvent::Request(_)
                | SessionEvent::Fold(_)
        )
}
