//! What is done for a provider behind everybody's back: one piece of work after another, in the order in which they came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

use crate::client::event::MemoryEvent;
use crate::client::state::Shared;
use crate::provider::connection::ProviderConnection;
use crate::provider::error::MemoryError;

/// A piece of work that finds no server is tried so often.
const MOST_TRIES: usize = 3;
/// The rest before the next try, where the server did not say how long it needs one.
const REST: Duration = Duration::from_secs(1);

/// A piece of work.
#[derive(Debug)]
pub(crate) enum MemoryJob {
    /// What was said in a turn.
    Sync { talk: String, user: String, assistant: String },
    /// What may be wanted in the next turn.
    Prefetch { talk: String, question: String },
    /// What was folded.
    Offer { talk: String, texts: Vec<String> },
    /// A conversation has ended.
    End { talk: String },
}

impl MemoryJob {
    pub(crate) fn kind(&self) -> JobKind {
        match self {
            MemoryJob::Sync { .. } | MemoryJob::Offer { .. } => JobKind::Write,
            MemoryJob::Prefetch { .. } => JobKind::Prefetch,
            MemoryJob::End { .. } => JobKind::End,
        }
    }
}

/// What a piece of work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobKind {
    /// Something is lost if it is not done.
    Write,
    /// Something is ready if it is done.
    Prefetch,
    /// Somebody is told.
    End,
}

/// Does work as long as there is some. Where there is none for the moment, conversations that were silent for long are ended.
pub(crate) async fn work(shared: Arc<Shared>, mut jobs: Receiver<MemoryJob>) {
    let idle = shared.limits.idle;
    loop {
        let until_silent = shared.book().talks.until_silent(idle, Instant::now());
        let job = match tokio::time::timeout(until_silent, jobs.recv()).await {
            Ok(Some(job)) => job,
            Ok(None) => break,
            Err(_) => {
                // One at a time: what comes meanwhile has not to wait for all of them.
                let silent = shared.book().talks.silent(idle, Instant::now());
                if let Some(talk) = silent {
                    one(&shared, MemoryJob::End { talk }).await;
                }
                continue;
            }
        };
        let kind = job.kind();
        let is_in_vain = shared.is_ending() && kind == JobKind::Prefetch;
        if !is_in_vain {
            one(&shared, job).await;
            shared.done(kind);
        }
    }
    let left = shared.book().talks.all();
    for talk in left {
        one(&shared, MemoryJob::End { talk }).await;
    }
}

async fn one(shared: &Arc<Shared>, job: MemoryJob) {
    let Some(server) = &shared.server else { return };
    let deed = match &job {
        MemoryJob::Prefetch { talk, question } => {
            if let Ok(text) = server.search(talk, question).await {
                shared.keep_spare(talk, Some(text).filter(|text| !text.is_empty()));
            }
            return;
        }
        MemoryJob::End { talk } => {
            let _ = server.end(talk).await;
            return;
        }
        MemoryJob::Sync { .. } => MemoryEvent::Synced,
        MemoryJob::Offer { .. } => MemoryEvent::Offered,
    };
    match written(shared, server, &job).await {
        Ok(()) => {
            shared.well();
            shared.count(deed);
        }
        Err(fault) => {
            shared.tell(&fault);
            shared.count(MemoryEvent::NotWritten);
        }
    }
}

/// Writes something down, again if the server was not there.
async fn written(shared: &Shared, server: &ProviderConnection, job: &MemoryJob) -> Result<(), MemoryError> {
    let mut n_tries = 1;
    loop {
        let tried = match job {
            MemoryJob::Sync { talk, user, assistant } => server.sync(talk, user, assistant).await,
            MemoryJob::Offer { talk, texts } => server.offer(talk, texts).await,
            MemoryJob::Prefetch { .. } | MemoryJob::End { .. } => Ok(()),
        };
        let Err(fault) = tried else { return Ok(()) };
        let rest = match &fault {
            MemoryError::BackingOff(rest) => *rest,
            fault if fault.is_connection_error() => REST,
            _ => return Err(fault),
        };
        if n_tries == MOST_TRIES || rest > shared.limits.call {
            return Err(fault);
        }
        shared.tell(&fault);
        n_tries += 1;
        tokio::time::sleep(rest).await;
    }
}
