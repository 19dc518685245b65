//! Summaries of stored sessions: written in the background or by hand, and recorded as events of the session.

use fanfold_core::summary::{Summary, SummaryOptions};
use fanfold_core::{Event, Tokens};
use fanfold_redact::redact;
use fanfold_store::{Batch, Millis, NodeId, Op, SessionId, StoreError};

use super::attempts::{Attempts, SummaryProgress, backoffs_after, run_job};
use super::fallback::{FailureEffect, FallbackChain, FallbackRules};
use super::models::SummaryModels;
use super::report::{JobOutcome, ModelFailure, WrittenSummary};
use crate::engine::{OpError, SessionEngine};
use crate::follow::folded_conversation::{FoldedConversation, messages_of};
use crate::follow::session_state::{CachedSession, MessageList, summary_of};
use crate::lease::Lease;
use crate::log::backoff::Backoff;
use crate::log::events::{SessionEvent, SummaryRecord};
use crate::log::session_log::{Positions, SessionLog, is_ancestor};
use crate::request::append::MAX_ATTEMPTS;
use crate::request::receive::ids_of;

/// The lease of a session's summary job. It is longer than the timeout of one answer.
const LEASE_MS: i64 = 1_200_000;

/// A summary to be written.
#[derive(Debug, Clone, Copy)]
pub struct SummaryTask<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// A topic that gets most of the space; may be empty.
    pub focus: &'a str,
    /// True if a person requested the summary and waits for it. Then backoffs are ignored, and old steps are folded
    /// together with the summary.
    pub is_by_hand: bool,
}

/// A conversation to be summarised.
struct SummarySource {
    session: Box<dyn fanfold_core::Engine>,
    /// The newest recorded summary. It may not be in the session's view yet.
    previous: Option<Summary>,
}

/// The result of a job that is not recorded yet.
pub struct PendingSummary {
    attempts: Attempts,
    /// The backoffs before the job, by model.
    backoffs: Vec<Option<Backoff>>,
    session: Box<dyn fanfold_core::Engine>,
}

impl SessionLog {
    /// The newest recorded summary of messages that the conversation contains.
    fn newest_summary(&self, positions: &Positions, followed: &FoldedConversation) -> Option<Summary> {
        self.events.iter().rev().find_map(|noted| match &noted.event {
            SessionEvent::Summarised(summary) if positions.contains_key(&noted.tip?) => {
                summary_of(followed, summary)
            }
            _ => None,
        })
    }
}

impl SessionEngine {
    /// True if the last request of a session has folded something that a summary could describe.
    pub fn has_just_folded(&self, session: &SessionId) -> bool {
        self.cache.peek(session, |cached| cached.state.has_new_fold).unwrap_or(false)
    }

    /// Writes a summary of the folded steps of a cached session and records it. Blocks until the models have
    /// answered.
    ///
    /// The summary appears in the view with the next fold. A failure changes neither the view nor the last summary.
    pub fn summarise(
        &self,
        task: &SummaryTask<'_>,
        models: &SummaryModels,
        report: &mut dyn FnMut(&SummaryProgress),
    ) -> Result<JobOutcome, OpError> {
        if models.models.is_empty() {
            return Ok(JobOutcome::NoModel);
        }
        let past = SessionLog::read(&*self.store, task.session)?;
        let cached = self.cache.peek(task.session, |CachedSession { state, .. }| {
            let source = SummarySource {
                session: state.followed.session.fork(),
                previous: past.newest_summary(&state.messages.positions, &state.followed),
            };
            (source, state.messages.ids.last().copied())
        });
        let Some((source, tip)) = cached else {
            // The next request is using the session. Its fold will start another job.
            if !task.is_by_hand {
                return Ok(JobOutcome::Overtaken);
            }
            return Err(OpError::invalid(
                format!("session {} was not folded by this process", task.session),
                format!("fold it first: fanfold fold --session {}", task.session),
            ));
        };
        match self.run_models(task, models, &past, source, report)? {
            Ok((pending, _lease)) => self.record_attempts(task, models, &pending, tip),
            Err(outcome) => Ok(outcome),
        }
    }

    /// Writes a summary of a conversation before its messages are stored. Returns the outcome, and the result for
    /// [`store_summary`](Self::store_summary), to be called when the messages are stored.
    ///
    /// Until then only the backoffs of a failed job are recorded, and only if the session exists.
    pub fn summarise_before_storing(
        &self,
        task: &SummaryTask<'_>,
        followed: &FoldedConversation,
        models: &SummaryModels,
        report: &mut dyn FnMut(&SummaryProgress),
    ) -> Result<(JobOutcome, Option<PendingSummary>), OpError> {
        if models.models.is_empty() {
            return Ok((JobOutcome::NoModel, None));
        }
        let row = self.store.session(task.session)?;
        let past = match row {
            Some(_) => SessionLog::read(&*self.store, task.session)?,
            None => SessionLog::default(),
        };
        let messages = MessageList::new(ids_of(None, followed.conversation.plain_messages(0)));
        let previous = past.newest_summary(&messages.positions, followed);
        let source = SummarySource { session: followed.session.fork(), previous };
        let (pending, _lease) = match self.run_models(task, models, &past, source, report)? {
            Ok(result) => result,
            Err(outcome) => return Ok((outcome, None)),
        };
        match (outcome_of(&pending.attempts, models, &*pending.session).1, row) {
            (outcome @ JobOutcome::Aborted(_), None) => Ok((outcome, None)),
            (JobOutcome::Aborted(_), Some(row)) => {
                Ok((self.record_attempts(task, models, &pending, row.tip)?, None))
            }
            (outcome, _) => Ok((outcome, Some(pending))),
        }
    }

    /// Records a summary that was written before its conversation was stored.
    pub fn store_summary(
        &self,
        task: &SummaryTask<'_>,
        models: &SummaryModels,
        pending: &PendingSummary,
    ) -> Result<JobOutcome, OpError> {
        let tip = self.cache.peek(task.session, |cached| cached.state.messages.ids.last().copied()).flatten();
        self.record_attempts(task, models, pending, tip)
    }

    /// Runs the job while holding the session's summary lease. Returns the result and the lease, or the outcome of a
    /// job that called no model.
    fn run_models(
        &self,
        task: &SummaryTask<'_>,
        models: &SummaryModels,
        past: &SessionLog,
        source: SummarySource,
        report: &mut dyn FnMut(&SummaryProgress),
    ) -> Result<Result<(PendingSummary, Lease<'_>), JobOutcome>, OpError> {
        let backoffs: Vec<Option<Backoff>> =
            models.models.iter().map(|model| past.model_pause(&model.key())).collect();
        let rules = FallbackRules { is_by_hand: task.is_by_hand, abort_on_failure: models.abort_on_failure };
        let chain = match FallbackChain::start(&backoffs, rules, self.clock.now()) {
            Ok(chain) => chain,
            Err(Backoff { until, why, .. }) => {
                return Ok(Err(JobOutcome::BackingOff { until: Millis(until), why }));
            }
        };
        let SummarySource { mut session, previous } = source;
        if task.is_by_hand {
            session.apply(Event::FoldRequested { range: None });
        }
        // Folds hold the session's own lock. They must not wait for a model, so a summary has a lock of its own.
        let key = SessionId(format!("errand of {}", task.session));
        let lease = Lease::new(&*self.store, key, LEASE_MS);
        // It does not wait, because the holder's summary is as good.
        if let Some(holder) = lease.acquire(&*self.clock)? {
            return Ok(Err(JobOutcome::Busy(holder)));
        }
        let today = self.clock.now().to_string();
        let from_scratch = task.is_by_hand && !task.focus.trim().is_empty();
        let new_job = |window| {
            let options = summary_options(task.focus, &today, window);
            session.summary_job(&SummaryOptions { previous: previous.clone(), from_scratch, ..options })
        };
        let mut report = |progress: &SummaryProgress| {
            // If the lease can't be renewed, it expires by itself.
            let _ = lease.acquire(&*self.clock);
            report(progress);
        };
        let Some(attempts) = run_job(&new_job, models, chain, &mut report) else {
            return Ok(Err(JobOutcome::NothingToDo));
        };
        Ok(Ok((PendingSummary { attempts, backoffs, session }, lease)))
    }

    /// Records the result of a job: the summary after the message `tip`, and the backoffs of models that failed.
    fn record_attempts(
        &self,
        task: &SummaryTask<'_>,
        models: &SummaryModels,
        pending: &PendingSummary,
        tip: Option<NodeId>,
    ) -> Result<JobOutcome, OpError> {
        let PendingSummary { attempts, backoffs, session } = pending;
        let mut notes: Vec<SessionEvent> = Vec::new();
        if let Ok(summary) = &attempts.outcome {
            let upto = messages_of(session.transcript().entry(summary.upto)).last().copied();
            notes.push(SessionEvent::Summarised(SummaryRecord {
                text: summary.text.to_string(),
                upto: upto.unwrap_or_default(),
                day: summary.day.clone(),
                model: models.models[attempts.model_index].key(),
                at_once: task.is_by_hand,
            }));
        }
        for (model, backoff) in
            backoffs_after(&attempts.failures, backoffs, task.is_by_hand, self.clock.now())
        {
            notes.push(SessionEvent::ModelPaused { model: models.models[model].key(), rest: backoff });
        }
        if !attempts.failures.is_empty() || !attempts.flaws.is_empty() {
            notes.push(SessionEvent::SummaryAttempted {
                model: attempts.outcome.is_ok().then(|| models.models[attempts.model_index].key()),
                failures: attempts.failures.iter().map(|(_, failure)| failure.name().to_owned()).collect(),
                flaws: attempts.flaws.iter().map(|flaw| flaw.name().to_owned()).collect(),
            });
        }
        let mut outcome = outcome_of(attempts, models, &**session).1;
        let is_success = matches!(outcome, JobOutcome::Written(_) | JobOutcome::Digest(_));
        if task.is_by_hand && is_success {
            notes.push(SessionEvent::FoldRequested { from: None, to: None });
        }
        for _ in 0..MAX_ATTEMPTS {
            let row = self.row(task.session)?;
            let has_tip = tip == row.tip || is_ancestor(&*self.store, tip, row.tip)?;
            if !has_tip {
                // The client rewound the conversation to before the summarised messages and went on from there.
                notes.retain(|note| {
                    matches!(note, SessionEvent::ModelPaused { .. } | SessionEvent::SummaryAttempted { .. })
                });
                outcome = if is_success { JobOutcome::Overtaken } else { outcome };
            }
            let ops = notes.iter().map(|note| Op::AddEvent(task.session.clone(), note.encode())).collect();
            let expected_tips = vec![(task.session.clone(), row.tip)];
            match self.store.commit(&Batch { at: self.clock.now(), expected_tips, ops }) {
                Err(StoreError::Conflict(_)) => {}
                committed => return Ok(committed.map(|_| outcome)?),
            }
        }
        Err(StoreError::Conflict(task.session.clone()).into())
    }
}

/// Writes a summary of a conversation that is not stored, by hand. Returns the summary, if any, and the outcome.
pub fn summarise_unstored(
    session: &dyn fanfold_core::Engine,
    focus: &str,
    models: &SummaryModels,
    now: Millis,
    report: &mut dyn FnMut(&SummaryProgress),
) -> (Option<Summary>, JobOutcome) {
    if models.models.is_empty() {
        return (None, JobOutcome::NoModel);
    }
    let rules = FallbackRules { is_by_hand: true, abort_on_failure: models.abort_on_failure };
    let no_backoffs = vec![None; models.models.len()];
    let Ok(chain) = FallbackChain::start(&no_backoffs, rules, now) else {
        return (None, JobOutcome::NoModel);
    };
    let mut session = session.fork();
    session.apply(Event::FoldRequested { range: None });
    let today = now.to_string();
    let new_job = |window| session.summary_job(&summary_options(focus, &today, window));
    match run_job(&new_job, models, chain, report) {
        Some(attempts) => outcome_of(&attempts, models, &*session),
        None => (None, JobOutcome::NothingToDo),
    }
}

/// The options of a job for a model with this window. `today` is a time that starts with the date.
fn summary_options(focus: &str, today: &str, window: Tokens) -> SummaryOptions {
    let focus = Some(focus.trim()).filter(|focus| !focus.is_empty()).map(str::to_owned);
    let today = today.split(' ').next().unwrap_or_default().to_owned();
    SummaryOptions { focus, today, redact, ..SummaryOptions::new(window) }
}

fn outcome_of(
    attempts: &Attempts,
    models: &SummaryModels,
    session: &dyn fanfold_core::Engine,
) -> (Option<Summary>, JobOutcome) {
    let failures: Vec<ModelFailure> = attempts.failures.iter().map(|(_, failure)| failure.clone()).collect();
    match &attempts.outcome {
        Err(FailureEffect::Abort) => (None, JobOutcome::Aborted(failures)),
        Err(FailureEffect::Digest) => (None, JobOutcome::Digest(failures)),
        Ok(summary) => {
            let model_index = attempts.model_index;
            let model = models.models[model_index].model.clone();
            let tokens = session.counter().count(&summary.text);
            let n_answers = attempts.n_answers;
            let written = WrittenSummary { model, model_index, tokens, n_answers, failures };
            (Some(summary.clone()), JobOutcome::Written(written))
        }
    }
}
