//! State shared by a client, its worker and its searches.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::client::EventCallback;
use crate::client::event::MemoryEvent;
use crate::client::worker::JobKind;
use crate::conversation::idle::ActiveConversations;
use crate::conversation::pending_recall::PendingRecall;
use crate::conversation::turn::MemoryTurn;
use crate::files::entries::entries;
use crate::files::{MemoryFile, MemoryFiles};
use crate::provider::config::MemoryLimits;
use crate::provider::connection::ProviderConnection;
use crate::provider::error::MemoryError;

/// Maximum number of conversations with a fallback text.
const MAX_FALLBACKS: usize = 128;

/// State shared by the client, its worker and its searches.
pub(crate) struct ClientState {
    pub(crate) provider: Option<ProviderConnection>,
    pub(crate) accepts_offers: bool,
    pub(crate) limits: MemoryLimits,
    pub(crate) files: Option<MemoryFiles>,
    pub(crate) on_event: Option<EventCallback>,
    /// Guards searches and their results. It is never held during I/O.
    pub(crate) locked: Mutex<LockedState>,
    pub(crate) n_late: AtomicU32,
    pub(crate) n_writes: AtomicUsize,
    pub(crate) n_prefetches: AtomicUsize,
    pub(crate) is_stopping: AtomicBool,
}

#[derive(Default)]
pub(crate) struct LockedState {
    pub(crate) turns: VecDeque<(MemoryTurn, PendingRecall)>,
    pub(crate) fallbacks: BTreeMap<String, String>,
    pub(crate) searching: HashSet<String>,
    pub(crate) conversations: ActiveConversations,
    /// Name of the error that was reported last; `None` while the provider works.
    pub(crate) reported_error: Option<&'static str>,
    pub(crate) counts: BTreeMap<MemoryEvent, u64>,
}

impl ClientState {
    pub(crate) fn locked(&self) -> MutexGuard<'_, LockedState> {
        lock(&self.locked)
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Counts a queued job.
    pub(crate) fn job_queued(&self, kind: JobKind) {
        if let Some(counter) = self.counter(kind) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a job as finished, whether it succeeded or not.
    pub(crate) fn job_finished(&self, kind: JobKind) {
        if let Some(counter) = self.counter(kind) {
            counter.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn counter(&self, kind: JobKind) -> Option<&AtomicUsize> {
        match kind {
            JobKind::Write => Some(&self.n_writes),
            JobKind::Prefetch => Some(&self.n_prefetches),
            JobKind::End => None,
        }
    }

    pub(crate) fn count(&self, event: MemoryEvent) {
        *self.locked().counts.entry(event).or_default() += 1;
        if let Some(on_event) = &self.on_event {
            on_event(event);
        }
    }

    /// Reports an error: as a warning when the provider stops working, then at debug level.
    pub(crate) fn report_error(&self, error: &MemoryError) {
        // A backoff follows an error that was already reported.
        let is_backoff = matches!(error, MemoryError::BackingOff(_));
        let mut locked = self.locked();
        if is_backoff || locked.reported_error == Some(error.name()) {
            tracing::debug!(%error, "memory");
            return;
        }
        let is_first = locked.reported_error.replace(error.name()).is_none();
        drop(locked);
        let hint = error.hint();
        if is_first {
            tracing::warn!(target: "fanfold::memory", %error, hint, "the memory provider failed; turns continue without it");
        } else {
            tracing::debug!(target: "fanfold::memory", %error, hint, "the memory provider still fails");
        }
    }

    /// Records that the provider works.
    pub(crate) fn report_success(&self) {
        if self.locked().reported_error.take().is_some() {
            tracing::info!(target: "fanfold::memory", "the memory provider works again");
        }
    }

    /// Replaces the fallback text for a conversation's next turn.
    pub(crate) fn store_fallback(&self, conversation: &str, text: Option<String>) {
        let mut locked = self.locked();
        match text {
            Some(text) => {
                if locked.fallbacks.len() >= MAX_FALLBACKS && !locked.fallbacks.contains_key(conversation) {
                    locked.fallbacks.pop_first();
                }
                locked.fallbacks.insert(conversation.to_owned(), text);
            }
            None => {
                locked.fallbacks.remove(conversation);
            }
        }
    }

    /// The entries of the memory files as lines.
    pub(crate) fn files_text(&self) -> Option<String> {
        let files = self.files.as_ref()?;
        let all: Vec<String> = MemoryFile::ALL
            .into_iter()
            .filter_map(|file| files.read(file).ok())
            .flat_map(|text| entries(&text).into_iter().map(|entry| format!("- {entry}")).collect::<Vec<_>>())
            .collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}

/// Locks a mutex. A poisoned one is safe to use, since its content is only replaced as a whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
