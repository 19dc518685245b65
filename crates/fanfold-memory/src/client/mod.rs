//! Runs a memory provider for conversations: a search before each turn and a write after it, both in the background.
//!
//! ```text
//! turn   -> recall        -> search in the background -> text, or none after the deadline
//! answer -> turn_answered -> queue -> one worker, in order: syncs, prefetches for the next turn, offers, ends
//! ```
//!
//! The provider runs on a separate thread, so a fault delays a turn by no more than the deadline. An error is
//! reported once, until the provider works again.

pub(crate) mod event; // events for counters
mod state; //           state shared by the client, its worker and its searches
mod worker; //          writes to the provider in order

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc as sync_mpsc};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::client::event::MemoryEvent;
use crate::client::state::{ClientState, lock};
use crate::client::worker::{MemoryJob, run_worker};
use crate::conversation::pending_recall::{PendingRecall, RecallOutcome};
use crate::conversation::turn::MemoryTurn;
use crate::conversation::user_text::user_text;
use crate::files::MemoryFiles;
use crate::provider::config::{MemoryLimits, MemoryProvider};
use crate::provider::connection::{ProviderCheck, ProviderConnection};
use crate::provider::error::MemoryError;

/// Number of turns whose recalled text is cached.
const MAX_TURNS: usize = 256;
/// Maximum number of concurrent searches.
const MAX_SEARCHES: usize = 8;
/// After this number of turns without a result in time, turns stop waiting until a search is fast enough again.
const MAX_LATE: u32 = 3;
/// Maximum length in bytes of a prompt or an answer that is stored.
const MAX_TEXT_BYTES: usize = 4_000;
/// Maximum length in bytes of an offered text, and maximum number of texts in one offer.
const MAX_OFFER_BYTES: usize = 2_000;
const MAX_OFFERED_TEXTS: usize = 16;

/// Called for each event.
pub type EventCallback = Arc<dyn Fn(MemoryEvent) + Send + Sync>;

/// Work that was not finished when the client stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnfinishedWork {
    /// Number of turns and offers that were not written.
    pub n_writes: usize,
    /// Number of prefetches that were not run.
    pub n_prefetches: usize,
    /// True if the worker had to be aborted.
    pub is_stopped: bool,
}

/// A client of a memory provider and of the memory files.
pub struct MemoryClient {
    state: Arc<ClientState>,
    /// `None` after `stop`.
    jobs: Mutex<Option<mpsc::Sender<MemoryJob>>>,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// `None` only during `drop`.
    runtime: Option<Runtime>,
}

impl MemoryClient {
    /// Starts with a provider, with memory files, or with both. A program is started on first use or by
    /// [`warm_up`](Self::warm_up).
    pub fn start(
        provider: Option<MemoryProvider>,
        files: Option<MemoryFiles>,
        limits: MemoryLimits,
        on_event: Option<EventCallback>,
    ) -> Result<MemoryClient, MemoryError> {
        let accepts_offers = provider.as_ref().is_some_and(MemoryProvider::accepts_offers);
        let provider = provider.map(|provider| ProviderConnection::new(provider, limits.call)).transpose()?;
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("fanfold-memory").enable_all().build();
        let runtime =
            runtime.map_err(|error| MemoryError::Unreachable(format!("cannot start a thread: {error}")))?;
        let state = Arc::new(ClientState {
            provider,
            accepts_offers,
            limits,
            files,
            on_event,
            locked: Mutex::default(),
            n_late: AtomicU32::new(0),
            n_writes: AtomicUsize::new(0),
            n_prefetches: AtomicUsize::new(0),
            is_stopping: AtomicBool::new(false),
        });
        let (jobs, queue) = mpsc::channel(limits.queue.max(1));
        let worker = runtime.spawn(run_worker(Arc::clone(&state), queue));
        Ok(MemoryClient {
            state,
            jobs: Mutex::new(Some(jobs)),
            worker: Mutex::new(Some(worker)),
            runtime: Some(runtime),
        })
    }

    /// Connects to the provider in the background, so that the first turn need not wait for it.
    pub fn warm_up(&self) {
        let state = Arc::clone(&self.state);
        self.runtime().spawn(async move {
            let Some(provider) = &state.provider else { return };
            if let Err(error) = provider.warm_up().await {
                state.report_error(&error);
            }
        });
    }

    /// Starts the search of a turn, which is awaited for at most `max_wait`. Later requests of the turn share it.
    pub fn recall(&self, turn: &MemoryTurn, max_wait: Duration) -> PendingRecall {
        let state = &self.state;
        let mut locked = state.locked();
        locked.conversations.record_request(&turn.conversation, Instant::now());
        if let Some((_, known)) = locked.turns.iter().find(|(known, _)| known == turn) {
            return known.clone();
        }
        let is_slow = state.n_late.load(Ordering::Relaxed) >= MAX_LATE;
        let now = Instant::now();
        let deadline = if is_slow { now } else { now + state.limits.deadline.min(max_wait) };
        let is_busy = locked.searching.contains(&turn.conversation) || locked.searching.len() >= MAX_SEARCHES;
        let fallback = locked.fallbacks.get(&turn.conversation).cloned();
        let pending = PendingRecall::new(if is_busy { now } else { deadline }, fallback);
        if state.provider.is_none() {
            pending.complete(None);
        } else if is_busy {
            // Do not start a second search while one may hang.
        } else {
            locked.searching.insert(turn.conversation.clone());
            self.runtime().spawn(search(Arc::clone(state), turn.clone(), pending.clone()));
        }
        locked.turns.push_back((turn.clone(), pending.clone()));
        if locked.turns.len() > MAX_TURNS {
            locked.turns.pop_front();
        }
        drop(locked);
        if is_busy && state.provider.is_some() {
            state.count(MemoryEvent::Busy);
        }
        pending
    }

    /// The recalled text of a turn, awaited up to the deadline. Each request of the turn gets the same text.
    pub fn recalled_text(&self, pending: &PendingRecall) -> Option<String> {
        let state = &self.state;
        let (text, outcome) = pending.decide(|| state.files_text());
        let event = match (&text, outcome) {
            (_, RecallOutcome::AlreadyDecided) => return text,
            (_, RecallOutcome::Late) => {
                state.n_late.fetch_add(1, Ordering::Relaxed);
                MemoryEvent::Late
            }
            (Some(_), RecallOutcome::InTime) => MemoryEvent::Recalled,
            (None, RecallOutcome::InTime) => MemoryEvent::NoMatch,
        };
        if event == MemoryEvent::Late {
            state.report_error(&MemoryError::Late(state.limits.deadline));
        }
        state.count(event);
        text
    }

    /// Queues the write of an answered turn and a prefetch for the next one.
    pub fn turn_answered(&self, turn: &MemoryTurn, answer: &str) {
        let assistant = clean(answer, MAX_TEXT_BYTES);
        let user = clean(&turn.prompt, MAX_TEXT_BYTES);
        if user.is_empty() || assistant.is_empty() || self.state.provider.is_none() {
            return;
        }
        self.queue(MemoryJob::Sync {
            conversation: turn.conversation.clone(),
            user: user.clone(),
            assistant,
        });
        self.queue(MemoryJob::Prefetch { conversation: turn.conversation.clone(), query: user });
        // Queued after the writes of the ended conversation.
        let max_active = self.state.limits.conversations;
        let ended =
            self.state.locked().conversations.record_write(&turn.conversation, max_active, Instant::now());
        if let Some(conversation) = ended {
            self.queue(MemoryJob::End { conversation });
        }
    }

    /// Offers folded text to the provider, which may store it.
    pub fn offer_folded(&self, turn: &MemoryTurn, originals: &[String]) {
        let texts: Vec<String> = originals
            .iter()
            .map(|text| clean(text, MAX_OFFER_BYTES))
            .filter(|text| !text.is_empty())
            .take(MAX_OFFERED_TEXTS)
            .collect();
        if !texts.is_empty() && self.state.accepts_offers {
            self.queue(MemoryJob::Offer { conversation: turn.conversation.clone(), texts });
        }
    }

    /// Accepts no more work, waits for queued work up to the limit, and closes the provider.
    pub fn stop(&self) -> UnfinishedWork {
        let until = Instant::now() + self.state.limits.shutdown;
        self.state.is_stopping.store(true, Ordering::Relaxed);
        // The worker ends when the sender is dropped and the queue is empty.
        drop(lock(&self.jobs).take());
        let Some(worker) = lock(&self.worker).take() else { return UnfinishedWork::default() };
        let stopper = worker.abort_handle();
        let (done, wait) = sync_mpsc::channel();
        let state = Arc::clone(&self.state);
        let ending = self.runtime().spawn(async move {
            let _ = worker.await;
            let _ = done.send(());
            if let Some(provider) = &state.provider {
                provider.close().await;
            }
            let _ = done.send(());
        });
        let remaining = || until.saturating_duration_since(Instant::now());
        let is_done = wait.recv_timeout(remaining()).is_ok();
        if is_done {
            let _ = wait.recv_timeout(remaining());
        }
        stopper.abort();
        ending.abort();
        if let Some(provider) = &self.state.provider {
            provider.kill();
        }
        let count = |n: &AtomicUsize| n.load(Ordering::Relaxed);
        UnfinishedWork {
            n_writes: count(&self.state.n_writes),
            n_prefetches: count(&self.state.n_prefetches),
            is_stopped: !is_done,
        }
    }

    /// Searches the provider and blocks.
    pub fn search(&self, query: &str) -> Result<String, MemoryError> {
        let Some(provider) = &self.state.provider else { return Ok(String::new()) };
        self.runtime().block_on(provider.search("fanfold search", &clean(query, MAX_TEXT_BYTES)))
    }

    /// Tests the provider and blocks.
    pub fn check(&self, query: &str) -> Result<Option<ProviderCheck>, MemoryError> {
        let Some(provider) = &self.state.provider else { return Ok(None) };
        self.runtime().block_on(provider.check(query)).map(Some)
    }

    /// Number of events by kind.
    pub fn counts(&self) -> BTreeMap<MemoryEvent, u64> {
        self.state.locked().counts.clone()
    }

    fn queue(&self, job: MemoryJob) {
        let jobs = lock(&self.jobs);
        let Some(jobs) = &*jobs else { return };
        let kind = job.kind();
        // Count before sending, since the worker may finish at once.
        self.state.job_queued(kind);
        if jobs.try_send(job).is_err() {
            self.state.job_finished(kind);
            self.state.count(MemoryEvent::Dropped);
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("the runtime is taken only by drop")
    }
}

impl Drop for MemoryClient {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Do not wait for a search that hangs.
            runtime.shutdown_background();
        }
    }
}

/// Runs the search of a turn.
async fn search(state: Arc<ClientState>, turn: MemoryTurn, pending: PendingRecall) {
    let Some(provider) = &state.provider else { return };
    let began = Instant::now();
    let found = provider.search(&turn.conversation, &clean(&turn.prompt, MAX_TEXT_BYTES)).await;
    state.locked().searching.remove(&turn.conversation);
    if began.elapsed() <= state.limits.deadline && found.is_ok() {
        state.n_late.store(0, Ordering::Relaxed);
    }
    match found {
        Ok(text) => {
            state.report_success();
            let text = Some(text).filter(|text| !text.is_empty());
            if !pending.complete(text.clone()) {
                state.store_fallback(&turn.conversation, text);
            }
        }
        Err(error) => {
            state.report_error(&error);
            state.count(MemoryEvent::SearchFailed);
            pending.complete(None);
        }
    }
}

/// A text as it may be sent to the provider: only what the user wrote, redacted and limited in length.
fn clean(text: &str, max_bytes: usize) -> String {
    let text = user_text(text);
    let text = fanfold_redact::redact(&text);
    text[..text.floor_char_boundary(max_bytes)].trim().to_owned()
}
