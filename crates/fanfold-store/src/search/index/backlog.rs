//! When an index that lags behind the messages catches up.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::search::index::lookup::INDEX_BATCH;

/// Whoever writes again sooner is in a hurry: what it writes is indexed later.
const IDLE: Duration = Duration::from_millis(250);

/// The index is behind by no more than this, whoever is in a hurry: a search would have to wait for it.
const MAX_BACKLOG: usize = 16_384;

/// How far an index is behind what this process wrote.
#[derive(Debug, Default)]
pub(crate) struct IndexBacklog(Mutex<BacklogState>);

#[derive(Debug, Default)]
struct BacklogState {
    /// About so many messages are not indexed.
    n_messages: usize,
    /// When the last batch was written.
    last_commit: Option<Instant>,
}

impl IndexBacklog {
    fn state(&self) -> MutexGuard<'_, BacklogState> {
        // A count and a moment: whoever died holding them left them whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a batch with so many new messages, and says whether some should be indexed now.
    pub(crate) fn is_due(&self, n_new: usize) -> bool {
        let mut since = self.state();
        let is_idle = since.last_commit.is_none_or(|written| written.elapsed() >= IDLE);
        since.n_messages += n_new;
        since.last_commit = Some(Instant::now());
        since.n_messages >= INDEX_BATCH && is_idle || since.n_messages >= MAX_BACKLOG
    }

    /// Notes that some were.
    pub(crate) fn record_indexed(&self, n_indexed: usize) {
        let mut since = self.state();
        // Also where it failed: the next one is not to try again at once.
        since.n_messages = since.n_messages.saturating_sub(n_indexed.max(INDEX_BATCH));
    }

    /// Notes that nothing is left.
    pub(crate) fn clear(&self) {
        self.state().n_messages = 0;
    }
}
