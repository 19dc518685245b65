//! Runs a summary job: sends its questions to the models, one model after another, until there is a summary.
//!
//! Originals are redacted one by one when the core quotes them. Each whole prompt is redacted again before it is
//! sent, and so is each answer.

use fanfold_core::Tokens;
use fanfold_core::summary::{Flaw, NextStep, Summary, SummaryJob};
use fanfold_provider::{ErrorClass, ModelPrompt};
use fanfold_redact::redact;
use fanfold_store::Millis;

use super::fallback::{Backoff, FailureEffect, FallbackAction, FallbackChain};
use super::models::SummaryModels;
use super::report::ModelFailure;

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

/// Runs a job to its end. `new_job` creates it for a model with this window, or returns none if there is nothing to
/// summarise.
pub(crate) fn run_job<'c>(
    new_job: &dyn Fn(Tokens) -> Option<SummaryJob<'c>>,
    models: &SummaryModels,
    mut chain: FallbackChain,
    report: &mut dyn FnMut(&SummaryProgress),
) -> Option<Attempts> {
    let mut window = models.models[chain.current()].window;
    let mut job = new_job(window)?;
    let (mut failures, mut all_flaws) = (Vec::new(), Vec::new());
    let (mut n_answers, mut n_questions, mut n_restarts) = (0, 0, 0);
    loop {
        let model = &models.models[chain.current()];
        let failure = match job.next() {
            NextStep::Done(summary) => {
                return Some(Attempts {
                    outcome: Ok(summary),
                    model_index: chain.current(),
                    failures,
                    flaws: all_flaws,
                    n_answers,
                });
            }
            NextStep::GiveUp(flaws) => ModelFailure::Rejected { model: model.model.clone(), flaws },
            NextStep::Ask(question) => {
                n_questions += 1;
                report(&SummaryProgress::Asking { model: model.model.clone(), number: n_questions });
                let prompt = ModelPrompt {
                    system: redact(&question.system).into_owned(),
                    user: redact(&question.user).into_owned(),
                    max_tokens: question.max_tokens,
                };
                match model.writer.write(&prompt) {
                    Ok(answer) => {
                        n_answers += 1;
                        let n_rejected = job.n_rejected();
                        match answer.is_truncated {
                            true => job.accept_truncated_answer(),
                            false => job.accept_answer(&redact(&answer.text)),
                        }
                        if job.n_rejected() > n_rejected {
                            all_flaws.extend(job.flaws().iter().cloned());
                            report(&SummaryProgress::Rejected(job.flaws().to_vec()));
                        }
                        continue;
                    }
                    Err(error) if error.class == ErrorClass::Overflow && n_restarts < MAX_RESTARTS => {
                        // The window is smaller than configured, so restart with smaller parts.
                        n_restarts += 1;
                        let limit = error.limit.map(Tokens).filter(|limit| *limit < window);
                        window = limit.unwrap_or(Tokens(window.0 / 2));
                        job = new_job(window)?;
                        continue;
                    }
                    Err(error) => ModelFailure::Provider(error),
                }
            }
        };
        let is_rejected = matches!(failure, ModelFailure::Rejected { .. });
        let (model_index, action) = (chain.current(), chain.after_failure(failure.kind()));
        report(&SummaryProgress::Failed(failure.clone()));
        failures.push((model_index, failure));
        match action {
            FallbackAction::Ask(next) => {
                // The next model continues with the finished parts, unless its window is smaller.
                let next_window = models.models[next].window;
                let can_continue = !is_rejected && next_window >= window && job.partial_summary().is_some();
                if !can_continue && (is_rejected || next_window != window) {
                    (job, window) = (new_job(next_window)?, next_window);
                }
                n_restarts = 0;
            }
            FallbackAction::Stop(effect) => {
                // A summary of the first parts is better than none.
                let outcome = match (effect, job.partial_summary()) {
                    (FailureEffect::Digest, Some(summary)) => Ok(summary),
                    (effect, _) => Err(effect),
                };
                return Some(Attempts { outcome, model_index, failures, flaws: all_flaws, n_answers });
            }
        }
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
