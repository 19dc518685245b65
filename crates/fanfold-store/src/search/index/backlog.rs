//! Decides when a store that appends messages also indexes them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::search::index::sql_index::INDEX_BATCH;

/// Commits that follow each other faster than this are not delayed by indexing.
const IDLE: Duration = Duration::from_millis(250);

/// A larger backlog is reduced even during fast commits, because the next search must wait for the rest.
const MAX_BACKLOG: usize = 16_384;

/// The approximate number of messages that this process has written but not indexed.
#[derive(Debug, Default)]
pub(crate) struct IndexBacklog(Mutex<BacklogState>);

#[derive(Debug, Default)]
struct BacklogState {
    /// The approximate number of unindexed messages.
    n_messages: usize,
    /// The time of the last commit.
    last_commit: Option<Instant>,
}

impl IndexBacklog {
    fn state(&self) -> MutexGuard<'_, BacklogState> {
        // A poisoned lock is safe to use: the fields are independent of each other.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a commit with `n_new` new messages, and returns whether a batch should be indexed now.
    pub(crate) fn is_due(&self, n_new: usize) -> bool {
        let mut state = self.state();
        let is_idle = state.last_commit.is_none_or(|last| last.elapsed() >= IDLE);
        state.n_messages += n_new;
        state.last_commit = Some(Instant::now());
        state.n_messages >= INDEX_BATCH && is_idle || state.n_messages >= MAX_BACKLOG
    }

    /// Records an attempt to index a batch.
    pub(crate) fn record_indexed(&self, n_indexed: usize) {
        let mut state = self.state();
        // Count a failed attempt as a full batch, so that the next commit does not retry at once.
        state.n_messages = state.n_messages.saturating_sub(n_indexed.max(INDEX_BATCH));
    }

    /// Records that all messages are indexed.
    pub(crate) fn clear(&self) {
        self.state().n_messages = 0;
    }
}
