//! Runs a summary job: sends its questions to the models, one model after another, until there is a summary.
//!
//! Originals are redacted one by one when the core quotes them. Each whole prompt is redacted again before it is
//! sent, and so is each answer.

use fanfold_core::Tokens;
use fanfold_core::summary::{Flaw, NextStep, Summary, SummaryJob, SummaryRequest};
use fanfold_provider::{ErrorClass, ModelPrompt, ProviderError};
use fanfold_redact::redact;
use fanfold_store::Millis;

use super::fallback::{FailureEffect, FallbackAction, FallbackChain};
use super::models::{SummaryModel, SummaryModels};
use super::report::ModelFailure;
use crate::log::backoff::Backoff;

/// How often a job is restarted for smaller parts because a prompt exceeded the window of a model.
const MAX_RESTARTS: usize = 3;

/// The progress of a summary job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SummaryProgress {
    /// A question is sent to a model.
    Asking {
        /// The model.
        model: String,
        /// The number of the question in this job, from 1.
        number: usize,
    },
    /// An answer was rejected because of these flaws.
    Rejected(Vec<Flaw>),
    /// A model has failed.
    Failed(ModelFailure),
}

/// The result of running a job, with all failures on the way.
pub(crate) struct Attempts {
    pub(crate) outcome: Result<Summary, FailureEffect>,
    /// The index of the model that was called last.
    pub(crate) model_index: usize,
    /// Each failure, with the index of the model.
    pub(crate) failures: Vec<(usize, ModelFailure)>,
    /// The flaws of all rejected answers.
    pub(crate) flaws: Vec<Flaw>,
    pub(crate) n_answers: usize,
}

/// Creates a job for a model with this window. `None` means that no step can be summarised.
type NewJob<'a, 'c> = &'a dyn Fn(Tokens) -> Option<SummaryJob<'c>>;

/// Runs a job to its end.
pub(crate) fn run_job<'c>(
    new_job: NewJob<'_, 'c>,
    models: &SummaryModels,
    chain: FallbackChain,
    report: &mut dyn FnMut(&SummaryProgress),
) -> Option<Attempts> {
    let mut run = JobRun::new(new_job, models, chain, report)?;
    let outcome = loop {
        let failure = match run.job.next() {
            NextStep::Done(summary) => break Ok(summary),
            NextStep::GiveUp(flaws) => ModelFailure::Rejected { model: run.model().model.clone(), flaws },
            NextStep::Ask(question) => match run.ask(&question) {
                Ok(()) => continue,
                Err(error) if error.class == ErrorClass::Overflow && run.n_restarts < MAX_RESTARTS => {
                    run.restart(error.limit.map(Tokens))?;
                    continue;
                }
                Err(error) => ModelFailure::Provider(error),
            },
        };
        let is_rejected = matches!(failure, ModelFailure::Rejected { .. });
        match run.record_failure(failure) {
            FallbackAction::Ask(_) => run.continue_with_next_model(is_rejected)?,
            // A summary of the first parts is better than none.
            FallbackAction::Stop(effect) => match (effect, run.job.partial_summary()) {
                (FailureEffect::Digest, Some(summary)) => break Ok(summary),
                (effect, _) => break Err(effect),
            },
        }
    };
    let JobRun { chain, failures, flaws, n_answers, .. } = run;
    Some(Attempts { outcome, model_index: chain.current(), failures, flaws, n_answers })
}

/// A job that is running.
struct JobRun<'a, 'c> {
    new_job: NewJob<'a, 'c>,
    models: &'a SummaryModels,
    report: &'a mut dyn FnMut(&SummaryProgress),
    job: SummaryJob<'c>,
    /// The window that the job was created for.
    window: Tokens,
    chain: FallbackChain,
    n_questions: usize,
    /// The number of restarts with the current model.
    n_restarts: usize,
    n_answers: usize,
    failures: Vec<(usize, ModelFailure)>,
    flaws: Vec<Flaw>,
}

impl<'a, 'c> JobRun<'a, 'c> {
    fn new(
        new_job: NewJob<'a, 'c>,
        models: &'a SummaryModels,
        chain: FallbackChain,
        report: &'a mut dyn FnMut(&SummaryProgress),
    ) -> Option<JobRun<'a, 'c>> {
        let window = models.models[chain.current()].window;
        Some(JobRun {
            new_job,
            models,
            report,
            job: new_job(window)?,
            window,
            chain,
            n_questions: 0,
            n_restarts: 0,
            n_answers: 0,
            failures: Vec::new(),
            flaws: Vec::new(),
        })
    }

    fn model(&self) -> &'a SummaryModel {
        &self.models.models[self.chain.current()]
    }

    /// Sends a question to the current model and passes the answer to the job.
    fn ask(&mut self, question: &SummaryRequest) -> Result<(), ProviderError> {
        let model = self.model();
        self.n_questions += 1;
        (self.report)(&SummaryProgress::Asking { model: model.model.clone(), number: self.n_questions });
        let answer = model.writer.write(&ModelPrompt {
            system: redact(&question.system).into_owned(),
            user: redact(&question.user).into_owned(),
            max_tokens: question.max_tokens,
        })?;
        self.n_answers += 1;
        let n_rejected = self.job.n_rejected();
        match answer.is_truncated {
            true => self.job.accept_truncated_answer(),
            false => self.job.accept_answer(&redact(&answer.text)),
        }
        if self.job.n_rejected() > n_rejected {
            self.flaws.extend(self.job.flaws().iter().cloned());
            (self.report)(&SummaryProgress::Rejected(self.job.flaws().to_vec()));
        }
        Ok(())
    }

    /// Restarts the job for smaller parts, because the window of the model is smaller than configured. `limit` is the
    /// window that the provider reported. `None` means that no step can be summarised.
    fn restart(&mut self, limit: Option<Tokens>) -> Option<()> {
        self.n_restarts += 1;
        let limit = limit.filter(|limit| *limit < self.window);
        self.window = limit.unwrap_or(Tokens(self.window.0 / 2));
        self.job = (self.new_job)(self.window)?;
        Some(())
    }

    /// Records a failure of the current model and makes the next one current, if there is one.
    fn record_failure(&mut self, failure: ModelFailure) -> FallbackAction {
        let (model_index, action) = (self.chain.current(), self.chain.after_failure(failure.kind()));
        (self.report)(&SummaryProgress::Failed(failure.clone()));
        self.failures.push((model_index, failure));
        action
    }

    /// Continues with the finished parts, unless the last answers were rejected or the window of the model is smaller.
    /// `None` means that no step can be summarised.
    fn continue_with_next_model(&mut self, is_rejected: bool) -> Option<()> {
        let window = self.model().window;
        let can_continue = !is_rejected && window >= self.window && self.job.partial_summary().is_some();
        if !can_continue && (is_rejected || window != self.window) {
            (self.job, self.window) = ((self.new_job)(window)?, window);
        }
        self.n_restarts = 0;
        Some(())
    }
}

/// The backoff of each model that failed, with the model's index. A job requested by hand restarts the count of
/// consecutive timeouts.
pub(crate) fn backoffs_after(
    failures: &[(usize, ModelFailure)],
    before: &[Option<Backoff>],
    is_by_hand: bool,
    now: Millis,
) -> Vec<(usize, Backoff)> {
    let mut backoffs: Vec<(usize, Backoff)> = Vec::new();
    for (model, failure) in failures {
        let before = before[*model].as_ref().filter(|_| !is_by_hand);
        let backoff = Backoff::after(failure.kind(), before, now, failure.to_string());
        // Only the last failure of a model counts.
        backoffs.retain(|(known, _)| known != model);
        backoffs.push((*model, backoff));
    }
    backoffs
}
