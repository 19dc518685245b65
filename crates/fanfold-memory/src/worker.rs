//! What is done for a provider behind everybody's back: one piece of work after another, in the order in which they came.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Receiver;

use crate::deed::Deed;
use crate::fault::Fault;
use crate::server::Server;
use crate::shared::Shared;

/// A piece of work that finds no server is tried so often.
const MOST_TRIES: usize = 3;
/// The rest before the next try, where the server did not say how long it needs one.
const REST: Duration = Duration::from_secs(1);

/// A piece of work.
#[derive(Debug)]
pub(crate) enum Job {
    /// What was said in a turn.
    Sync { talk: String, user: String, assistant: String },
    /// What may be wanted in the next turn.
    Prefetch { talk: String, question: String },
    /// What was folded.
    Offer { talk: String, texts: Vec<String> },
    /// A conversation has ended.
    End { talk: String },
}

impl Job {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Job::Sync { .. } | Job::Offer { .. } => Kind::Write,
            Job::Prefetch { .. } => Kind::Prefetch,
            Job::End { .. } => Kind::End,
        }
    }
}

/// What a piece of work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Something is lost if it is not done.
    Write,
    /// Something is ready if it is done.
    Prefetch,
    /// Somebody is told.
    End,
}

/// Does work as long as there is some. Where there is none for the moment, conversations that were silent for long are ended.
pub(crate) async fn work(shared: Arc<Shared>, mut jobs: Receiver<Job>) {
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
                    one(&shared, Job::End { talk }).await;
                }
                continue;
            }
        };
        let kind = job.kind();
        let is_in_vain = shared.is_ending() && kind == Kind::Prefetch;
        if !is_in_vain {
            one(&shared, job).await;
            shared.done(kind);
        }
    }
    let left = shared.book().talks.all();
    for talk in left {
        one(&shared, Job::End { talk }).await;
    }
}

async fn one(shared: &Arc<Shared>, job: Job) {
    let Some(server) = &shared.server else { return };
    let deed = match &job {
        Job::Prefetch { talk, question } => {
            if let Ok(text) = server.search(talk, question).await {
                shared.keep_spare(talk, Some(text).filter(|text| !text.is_empty()));
            }
            return;
        }
        Job::End { talk } => {
            let _ = server.end(talk).await;
            return;
        }
        Job::Sync { .. } => Deed::Synced,
        Job::Offer { .. } => Deed::Offered,
    };
    match written(shared, server, &job).await {
        Ok(()) => {
            shared.well();
            shared.count(deed);
        }
        Err(fault) => {
            shared.tell(&fault);
            shared.count(Deed::NotWritten);
        }
    }
}

/// Writes something down, again if the server was not there.
async fn written(shared: &Shared, server: &Server, job: &Job) -> Result<(), Fault> {
    let mut n_tries = 1;
    loop {
        let tried = match job {
            Job::Sync { talk, user, assistant } => server.sync(talk, user, assistant).await,
            Job::Offer { talk, texts } => server.offer(talk, texts).await,
            Job::Prefetch { .. } | Job::End { .. } => Ok(()),
        };
        let Err(fault) = tried else { return Ok(()) };
        let rest = match &fault {
            Fault::Resting(rest) => *rest,
            fault if fault.is_of_connection() => REST,
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
