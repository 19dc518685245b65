//! What a keeper, its worker and its searches share: what is known, what is counted, and what a person was told.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::client::EventCallback;
use crate::client::event::MemoryEvent;
use crate::client::worker::JobKind;
use crate::conversation::idle::Conversations;
use crate::conversation::pending_recall::PendingRecall;
use crate::conversation::turn::MemoryTurn;
use crate::files::entries::entries;
use crate::files::{MemoryFile, MemoryFiles};
use crate::provider::config::MemoryLimits;
use crate::provider::connection::ProviderConnection;
use crate::provider::error::MemoryError;

/// For so many conversations something is kept for the next turn.
const MOST_SPARE: usize = 128;

/// What the worker and the searches share.
pub(crate) struct Shared {
    pub(crate) server: Option<ProviderConnection>,
    pub(crate) wants_offers: bool,
    pub(crate) limits: MemoryLimits,
    pub(crate) files: Option<MemoryFiles>,
    pub(crate) on_deed: Option<EventCallback>,
    /// Guards what was recalled and what is kept; held for a look.
    pub(crate) book: Mutex<Notebook>,
    pub(crate) n_late: AtomicU32,
    pub(crate) n_writes: AtomicUsize,
    pub(crate) n_prefetches: AtomicUsize,
    pub(crate) is_ending: AtomicBool,
}

#[derive(Default)]
pub(crate) struct Notebook {
    pub(crate) turns: VecDeque<(MemoryTurn, PendingRecall)>,
    pub(crate) spare: BTreeMap<String, String>,
    pub(crate) searching: HashSet<String>,
    pub(crate) talks: Conversations,
    /// What a person was told is wrong.
    pub(crate) told: Option<&'static str>,
    pub(crate) counts: BTreeMap<MemoryEvent, u64>,
}

impl Shared {
    pub(crate) fn book(&self) -> MutexGuard<'_, Notebook> {
        lock(&self.book)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// A piece of work is to be done.
    pub(crate) fn left(&self, kind: JobKind) {
        if let Some(counter) = self.counter(kind) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A piece of work is done, one way or the other.
    pub(crate) fn done(&self, kind: JobKind) {
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

    pub(crate) fn count(&self, deed: MemoryEvent) {
        *self.book().counts.entry(deed).or_default() += 1;
        if let Some(on_deed) = &self.on_deed {
            on_deed(deed);
        }
    }

    /// Something is wrong with the provider. A person is told when it begins, not each time.
    pub(crate) fn tell(&self, fault: &MemoryError) {
        // That it rests is no news after what it rests from.
        let is_rest = matches!(fault, MemoryError::BackingOff(_));
        let mut book = self.book();
        if is_rest || book.told == Some(fault.name()) {
            tracing::debug!(%fault, "memory");
            return;
        }
        let is_first = book.told.replace(fault.name()).is_none();
        drop(book);
        let hint = fault.hint();
        if is_first {
            tracing::warn!(target: "fanfold::memory", %fault, hint, "memory does not work; turns go on without it");
        } else {
            tracing::debug!(target: "fanfold::memory", %fault, hint, "memory still does not work");
        }
    }

    /// The provider did what it should.
    pub(crate) fn well(&self) {
        if self.book().told.take().is_some() {
            tracing::info!(target: "fanfold::memory", "memory works again");
        }
    }

    /// Keeps something for a conversation's next turn.
    pub(crate) fn keep_spare(&self, talk: &str, text: Option<String>) {
        let mut book = self.book();
        match text {
            Some(text) => {
                if book.spare.len() >= MOST_SPARE && !book.spare.contains_key(talk) {
                    book.spare.pop_first();
                }
                book.spare.insert(talk.to_owned(), text);
            }
            None => {
                book.spare.remove(talk);
            }
        }
    }

    /// What the files of memory say.
    pub(crate) fn of_files(&self) -> Option<String> {
        let files = self.files.as_ref()?;
        let all: Vec<String> = MemoryFile::ALL
            .into_iter()
            .filter_map(|book| files.read(book).ok())
            .flat_map(|text| entries(&text).into_iter().map(|entry| format!("- {entry}")).collect::<Vec<_>>())
            .collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }
}

/// Whole values go in and out of what is locked, so a thread that died left them whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
