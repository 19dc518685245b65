//! Summaries written in the background: started after a fold, a few at once, on blocking threads.
//!
//! No request waits for a summary, and none is left half written when the proxy stops.

use std::sync::Arc;

use fanfold_engine::{JobOutcome, SessionEngine, SummaryProgress, SummaryTask};
use fanfold_store::SessionId;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::meter::{Meter, Writer};
use crate::reconnecting_engine::ReconnectingEngine;

/// Jobs that run at once. A fold that finds no slot is summarised with the next one.
const MAX_JOBS: usize = 4;

/// Starts summary jobs.
pub(crate) struct SummaryJobs {
    engine: Arc<ReconnectingEngine>,
    meter: Arc<Meter>,
    slots: Arc<Semaphore>,
}

impl SummaryJobs {
    pub(crate) fn new(engine: Arc<ReconnectingEngine>, meter: Arc<Meter>) -> SummaryJobs {
        SummaryJobs { engine, meter, slots: Arc::new(Semaphore::new(MAX_JOBS)) }
    }

    /// Starts a summary of what a request has folded, if it folded something and summaries are wanted.
    pub(crate) fn start(&self, engine: &Arc<SessionEngine>, session: &SessionId, focus: &str) {
        if !self.engine.host().wants_summaries() || !engine.has_just_folded(session) {
            return;
        }
        let (Ok(slot), Ok(runtime)) = (Arc::clone(&self.slots).try_acquire_owned(), Handle::try_current())
        else {
            return;
        };
        let (owner, meter, engine) = (Arc::clone(&self.engine), Arc::clone(&self.meter), Arc::clone(engine));
        let (session, focus) = (session.clone(), focus.to_owned());
        runtime.spawn_blocking(move || {
            let job = SummaryTask { session: &session, focus: &focus, is_by_hand: false };
            let mut count_flaws = |progress: &SummaryProgress| {
                if let SummaryProgress::Rejected(flaws) = progress {
                    flaws.iter().for_each(|flaw| meter.summary_flawed(flaw.name()));
                }
            };
            match engine.summarise(&job, &owner.host().ways(), &mut count_flaws) {
                Ok(ended) => {
                    count(&meter, &session, &ended);
                    log(&session, &ended);
                }
                Err(error) => tracing::warn!(%session, %error, "a summary could not be stored"),
            }
            drop(slot);
        });
    }
}

/// Counts the summary, and the models that failed to write it.
fn count(meter: &Meter, session: &SessionId, ended: &JobOutcome) {
    let (failed, last) = match ended {
        JobOutcome::Written(written) => {
            let writer = if written.model_index == 0 { Writer::Summary } else { Writer::Main };
            meter.summary_written(session, writer, written.tokens);
            (&written.failures, writer)
        }
        JobOutcome::Digest(failed) | JobOutcome::Aborted(failed) => (failed, Writer::Digest),
        JobOutcome::NothingToDo
        | JobOutcome::NoModel
        | JobOutcome::BackingOff { .. }
        | JobOutcome::Busy(_)
        | JobOutcome::Overtaken => return,
    };
    // At most two models fail. After the first, the second one is called if there is one.
    let both_failed =
        matches!(ended, JobOutcome::Digest(failed) | JobOutcome::Aborted(failed) if failed.len() > 1);
    for (i, failure) in failed.iter().enumerate() {
        meter.summary_fell_back(failure.name(), if i == 0 && both_failed { Writer::Main } else { last });
    }
}

/// Logs the result. Errors of models and providers are redacted; the summary itself is not logged.
fn log(session: &SessionId, ended: &JobOutcome) {
    match ended {
        JobOutcome::Written(written) => {
            let (model, tokens) = (&written.model, written.tokens.0);
            if let Some(failure) = written.failures.first() {
                tracing::warn!(%session, why = %failure, hint = failure.hint(), "another model wrote the summary");
            }
            tracing::info!(%session, model, tokens, "a summary was written");
        }
        JobOutcome::Digest(_) | JobOutcome::Aborted(_) => {
            let hint = ended.hint().unwrap_or_default();
            tracing::warn!(%session, why = %ended, hint, "no summary was written");
        }
        JobOutcome::NothingToDo
        | JobOutcome::NoModel
        | JobOutcome::BackingOff { .. }
        | JobOutcome::Busy(_)
        | JobOutcome::Overtaken => {
            tracing::debug!(%session, why = %ended, "no summary was written");
        }
    }
}
