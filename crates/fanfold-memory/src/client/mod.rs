//! The provider through the life of a conversation: asked before a turn, told after it, and never waited for.
//!
//! ```text
//! turn -- recall --> a search beside everything else -- at most the deadline --> text, or none
//! answer -- said --> queue --> one worker, in order: sync, prefetch of the next, offers, ends
//! ```
//!
//! It has a thread of its own. Whatever a provider does there, a turn goes on after its deadline; what is wrong is told
//! once, until it is well again.

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
use crate::client::state::{Shared, lock};
use crate::client::worker::{MemoryJob, work};
use crate::conversation::pending_recall::{Decision, PendingRecall};
use crate::conversation::turn::MemoryTurn;
use crate::conversation::user_text::user_text;
use crate::files::MemoryFiles;
use crate::provider::config::{MemoryLimits, MemoryProvider};
use crate::provider::connection::{ProviderCheck, ProviderConnection};
use crate::provider::error::MemoryError;

/// Of so many turns what was recalled is known.
const MOST_TURNS: usize = 256;
/// So many searches run at once.
const MOST_SEARCHES: usize = 8;
/// After so many turns without an answer in time, none is waited for until one would have been.
const MOST_LATE: u32 = 3;
/// So much of what somebody said is remembered.
const LONGEST_SAID: usize = 4_000;
/// So much of a text that is offered, and so many of them.
const LONGEST_OFFER: usize = 2_000;
const MOST_OFFERS: usize = 16;

/// Told of each thing that happened.
pub type EventCallback = Arc<dyn Fn(MemoryEvent) + Send + Sync>;

/// What was left undone at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnfinishedWork {
    /// Turns and offers that were not written down.
    pub n_writes: usize,
    /// Searches for a next turn that will not come.
    pub n_prefetches: usize,
    /// Whether the worker had to be stopped.
    pub is_stopped: bool,
}

/// Asks and tells a provider.
pub struct MemoryClient {
    shared: Arc<Shared>,
    /// None once the end has begun.
    jobs: Mutex<Option<mpsc::Sender<MemoryJob>>>,
    worker: Mutex<Option<JoinHandle<()>>>,
    /// None only while it is dropped.
    runtime: Option<Runtime>,
}

impl MemoryClient {
    /// Starts with a provider, with the files of memory, or with both. A program is started when it is first needed, or
    /// by [`warm_up`](Self::warm_up).
    pub fn start(
        provider: Option<MemoryProvider>,
        files: Option<MemoryFiles>,
        limits: MemoryLimits,
        on_deed: Option<EventCallback>,
    ) -> Result<MemoryClient, MemoryError> {
        let wants_offers = provider.as_ref().is_some_and(MemoryProvider::wants_offers);
        let server = provider.map(|provider| ProviderConnection::new(provider, limits.call)).transpose()?;
        let runtime =
            Builder::new_multi_thread().worker_threads(1).thread_name("fanfold-memory").enable_all().build();
        let runtime = runtime
            .map_err(|error| MemoryError::Unreachable(format!("no thread could be started: {error}")))?;
        let shared = Arc::new(Shared {
            server,
            wants_offers,
            limits,
            files,
            on_deed,
            book: Mutex::default(),
            n_late: AtomicU32::new(0),
            n_writes: AtomicUsize::new(0),
            n_prefetches: AtomicUsize::new(0),
            is_ending: AtomicBool::new(false),
        });
        let (jobs, queue) = mpsc::channel(limits.queue.max(1));
        let worker = runtime.spawn(work(Arc::clone(&shared), queue));
        Ok(MemoryClient {
            shared,
            jobs: Mutex::new(Some(jobs)),
            worker: Mutex::new(Some(worker)),
            runtime: Some(runtime),
        })
    }

    /// Starts the provider now, beside everything else, so that the first turn need not wait for it.
    pub fn warm_up(&self) {
        let shared = Arc::clone(&self.shared);
        self.runtime().spawn(async move {
            let Some(server) = &shared.server else { return };
            if let Err(fault) = server.warm_up().await {
                shared.tell(&fault);
            }
        });
    }

    /// Begins to recall something for a turn, and waits no longer than `most`; what an earlier request of the turn began
    /// is gone on with.
    pub fn recall(&self, turn: &MemoryTurn, most: Duration) -> PendingRecall {
        let shared = &self.shared;
        let mut book = shared.book();
        book.talks.asked(&turn.conversation, Instant::now());
        if let Some((_, known)) = book.turns.iter().find(|(known, _)| known == turn) {
            return known.clone();
        }
        let is_slow = shared.n_late.load(Ordering::Relaxed) >= MOST_LATE;
        let now = Instant::now();
        let by = if is_slow { now } else { now + shared.limits.deadline.min(most) };
        let is_busy = book.searching.contains(&turn.conversation) || book.searching.len() >= MOST_SEARCHES;
        let spare = book.spare.get(&turn.conversation).cloned();
        let recalling = PendingRecall::new(if is_busy { now } else { by }, spare);
        if shared.server.is_none() {
            recalling.came(None);
        } else if is_busy {
            // One that hangs is not asked twice.
        } else {
            book.searching.insert(turn.conversation.clone());
            self.runtime().spawn(search(Arc::clone(shared), turn.clone(), recalling.clone()));
        }
        book.turns.push_back((turn.clone(), recalling.clone()));
        if book.turns.len() > MOST_TURNS {
            book.turns.pop_front();
        }
        drop(book);
        if is_busy && shared.server.is_some() {
            shared.count(MemoryEvent::Busy);
        }
        recalling
    }

    /// What is recalled, waited for up to the deadline of its turn. The same for each request of the turn.
    pub fn recalled_text(&self, recalling: &PendingRecall) -> Option<String> {
        let shared = &self.shared;
        let (text, how) = recalling.decide(|| shared.of_files());
        let deed = match (&text, how) {
            (_, Decision::Before) => return text,
            (_, Decision::Without) => {
                shared.n_late.fetch_add(1, Ordering::Relaxed);
                MemoryEvent::Late
            }
            (Some(_), Decision::InTime) => MemoryEvent::Recalled,
            (None, Decision::InTime) => MemoryEvent::Nothing,
        };
        if deed == MemoryEvent::Late {
            shared.tell(&MemoryError::Late(shared.limits.deadline));
        }
        shared.count(deed);
        text
    }

    /// A turn was answered: that is written down, and something is looked for that the next turn may want.
    pub fn turn_answered(&self, turn: &MemoryTurn, answer: &str) {
        let assistant = clean(answer, LONGEST_SAID);
        let user = clean(&turn.prompt, LONGEST_SAID);
        if user.is_empty() || assistant.is_empty() || self.shared.server.is_none() {
            return;
        }
        self.queue(MemoryJob::Sync { talk: turn.conversation.clone(), user: user.clone(), assistant });
        self.queue(MemoryJob::Prefetch { talk: turn.conversation.clone(), question: user });
        // Behind its work, so that no end comes before it.
        let most = self.shared.limits.conversations;
        let ended = self.shared.book().talks.written(&turn.conversation, most, Instant::now());
        if let Some(talk) = ended {
            self.queue(MemoryJob::End { talk });
        }
    }

    /// Something was folded away: whoever wants it may keep it.
    pub fn offer_folded(&self, turn: &MemoryTurn, originals: &[String]) {
        let texts: Vec<String> = originals
            .iter()
            .map(|text| clean(text, LONGEST_OFFER))
            .filter(|text| !text.is_empty())
            .take(MOST_OFFERS)
            .collect();
        if !texts.is_empty() && self.shared.wants_offers {
            self.queue(MemoryJob::Offer { talk: turn.conversation.clone(), texts });
        }
    }

    /// A conversation has ended. One of which nobody says so has ended when it was silent for long.
    pub fn end_conversation(&self, talk: &str) {
        let was_told = self.shared.book().talks.ended(talk);
        if was_told {
            self.queue(MemoryJob::End { talk: talk.to_owned() });
        }
    }

    /// Takes no more work, waits for what is left up to the limit, and ends the provider.
    pub fn stop(&self) -> UnfinishedWork {
        let until = Instant::now() + self.shared.limits.shutdown;
        self.shared.is_ending.store(true, Ordering::Relaxed);
        // Without a sender the worker ends when the queue is empty.
        drop(lock(&self.jobs).take());
        let Some(worker) = lock(&self.worker).take() else { return UnfinishedWork::default() };
        let stopper = worker.abort_handle();
        let (done, wait) = sync_mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let ending = self.runtime().spawn(async move {
            let _ = worker.await;
            let _ = done.send(());
            if let Some(server) = &shared.server {
                server.close().await;
            }
            let _ = done.send(());
        });
        let left = || until.saturating_duration_since(Instant::now());
        let is_done = wait.recv_timeout(left()).is_ok();
        if is_done {
            let _ = wait.recv_timeout(left());
        }
        stopper.abort();
        ending.abort();
        if let Some(server) = &self.shared.server {
            server.kill();
        }
        let count = |n: &AtomicUsize| n.load(Ordering::Relaxed);
        UnfinishedWork {
            n_writes: count(&self.shared.n_writes),
            n_prefetches: count(&self.shared.n_prefetches),
            is_stopped: !is_done,
        }
    }

    /// Searches, for a person who waits.
    pub fn search(&self, question: &str) -> Result<String, MemoryError> {
        let Some(server) = &self.shared.server else { return Ok(String::new()) };
        self.runtime().block_on(server.search("fanfold search", &clean(question, LONGEST_SAID)))
    }

    /// Tries the provider, for a person who waits.
    pub fn check(&self, question: &str) -> Result<Option<ProviderCheck>, MemoryError> {
        let Some(server) = &self.shared.server else { return Ok(None) };
        self.runtime().block_on(server.check(question)).map(Some)
    }

    /// How long a turn waits at most.
    pub fn limits(&self) -> MemoryLimits {
        self.shared.limits
    }

    /// How often each thing happened.
    pub fn counts(&self) -> BTreeMap<MemoryEvent, u64> {
        self.shared.book().counts.clone()
    }

    fn queue(&self, job: MemoryJob) {
        let jobs = lock(&self.jobs);
        let Some(jobs) = &*jobs else { return };
        let kind = job.kind();
        // Before it is sent, since it may be done before anybody looks again.
        self.shared.left(kind);
        if jobs.try_send(job).is_err() {
            self.shared.done(kind);
            self.shared.count(MemoryEvent::Dropped);
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the drop")
    }
}

impl Drop for MemoryClient {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A search that hangs must not keep anybody.
            runtime.shutdown_background();
        }
    }
}

/// Searches for a turn.
async fn search(shared: Arc<Shared>, turn: MemoryTurn, recalling: PendingRecall) {
    let Some(server) = &shared.server else { return };
    let began = Instant::now();
    let found = server.search(&turn.conversation, &clean(&turn.prompt, LONGEST_SAID)).await;
    shared.book().searching.remove(&turn.conversation);
    if began.elapsed() <= shared.limits.deadline && found.is_ok() {
        shared.n_late.store(0, Ordering::Relaxed);
    }
    match found {
        Ok(text) => {
            shared.well();
            let text = Some(text).filter(|text| !text.is_empty());
            if !recalling.came(text.clone()) {
                shared.keep_spare(&turn.conversation, text);
            }
        }
        Err(fault) => {
            shared.tell(&fault);
            shared.count(MemoryEvent::NotFound);
            recalling.came(None);
        }
    }
}

/// A text as it may leave: what somebody said, without secrets, not too long.
fn clean(text: &str, most: usize) -> String {
    let said = user_text(text);
    let said = fanfold_redact::redact(&said);
    said[..said.floor_char_boundary(most)].trim().to_owned()
}
