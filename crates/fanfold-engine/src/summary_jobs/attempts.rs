//! An errand run to its end: who is asked, and what becomes of the answers.
//!
//! What a model is shown is made of originals that are redacted one by one. All that leaves is redacted once more as it stands, and so
//! is everything that comes back.

use fanfold_core::Tokens;
use fanfold_core::summary::{Flaw, NextStep, Summary, SummaryJob};
use fanfold_provider::{ErrorClass, ModelPrompt};
use fanfold_redact::redact;
use fanfold_store::Millis;

use super::fallback::{Chain, Move, Rest, Stop};
use super::models::Ways;
use super::report::Missed;

/// So often a part that is too long for its model is made shorter.
const MOST_SHORTER: usize = 3;

/// What is happening, for whoever waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// A model is asked.
    Asking {
        /// The model.
        model: String,
        /// Which question it is, from 1.
        number: usize,
    },
    /// It answered, and what it wrote is no summary: what is wrong with it.
    Flawed(Vec<Flaw>),
    /// A model gave no summary.
    Missed(Missed),
}

/// What came of it.
pub(crate) struct Tried {
    /// The summary, or how it was given up.
    pub(crate) outcome: Result<Summary, Stop>,
    /// Who was asked last.
    pub(crate) at: usize,
    /// What went wrong, each with who it was.
    pub(crate) missed: Vec<(usize, Missed)>,
    /// What was wrong with answers, those with it that were asked for again.
    pub(crate) flaws: Vec<Flaw>,
    pub(crate) n_answers: usize,
}

/// Runs an errand. `job` makes it for a model that reads so much at once; none if there is nothing to do.
pub(crate) fn drive<'c>(
    job: &dyn Fn(Tokens) -> Option<SummaryJob<'c>>,
    ways: &Ways,
    mut chain: Chain,
    tell: &mut dyn FnMut(&Progress),
) -> Option<Tried> {
    let mut window = ways.ways[chain.at()].window;
    let mut errand = job(window)?;
    let (mut missed, mut wrong) = (Vec::new(), Vec::new());
    let (mut n_answers, mut n_asked, mut n_shorter) = (0, 0, 0);
    loop {
        let way = &ways.ways[chain.at()];
        let miss = match errand.next() {
            NextStep::Done(summary) => {
                return Some(Tried { outcome: Ok(summary), at: chain.at(), missed, flaws: wrong, n_answers });
            }
            NextStep::GiveUp(flaws) => Missed::Flawed { model: way.model.clone(), flaws },
            NextStep::Ask(question) => {
                n_asked += 1;
                tell(&Progress::Asking { model: way.model.clone(), number: n_asked });
                let prompt = ModelPrompt {
                    system: redact(&question.system).into_owned(),
                    user: redact(&question.user).into_owned(),
                    max_tokens: question.max_tokens,
                };
                match way.writer.write(&prompt) {
                    Ok(answer) => {
                        n_answers += 1;
                        let n_flawed = errand.n_rejected();
                        match answer.is_truncated {
                            true => errand.accept_truncated_answer(),
                            false => errand.accept_answer(&redact(&answer.text)),
                        }
                        if errand.n_rejected() > n_flawed {
                            wrong.extend(errand.flaws().iter().cloned());
                            tell(&Progress::Flawed(errand.flaws().to_vec()));
                        }
                        continue;
                    }
                    Err(fault) if fault.class == ErrorClass::Overflow && n_shorter < MOST_SHORTER => {
                        // It reads less than was thought: the same in smaller parts.
                        n_shorter += 1;
                        let told = fault.limit.map(Tokens).filter(|limit| *limit < window);
                        window = told.unwrap_or(Tokens(window.0 / 2));
                        errand = job(window)?;
                        continue;
                    }
                    Err(fault) => Missed::Fault(fault),
                }
            }
        };
        let is_flawed = matches!(miss, Missed::Flawed { .. });
        let (at, next) = (chain.at(), chain.missed(miss.miss()));
        tell(&Progress::Missed(miss.clone()));
        missed.push((at, miss));
        match next {
            Move::Ask(next) => {
                // What the one before wrote well is of use to the next, unless that one reads less at once.
                let reads = ways.ways[next].window;
                let is_of_use = !is_flawed && reads >= window && errand.partial_summary().is_some();
                if !is_of_use && (is_flawed || reads != window) {
                    (errand, window) = (job(reads)?, reads);
                }
                n_shorter = 0;
            }
            Move::Stop(stop) => {
                // What was answered well before is good as far as it goes.
                let outcome = match (stop, errand.partial_summary()) {
                    (Stop::Digest, Some(summary)) => Ok(summary),
                    (stop, _) => Err(stop),
                };
                return Some(Tried { outcome, at, missed, flaws: wrong, n_answers });
            }
        }
    }
}

/// The rests that misses bring, each with who rests. A person who asks begins the row of timeouts anew.
pub(crate) fn rests_after(
    missed: &[(usize, Missed)],
    before: &[Option<Rest>],
    is_by_hand: bool,
    now: Millis,
) -> Vec<(usize, Rest)> {
    let mut rests: Vec<(usize, Rest)> = Vec::new();
    for (at, missed) in missed {
        let before = before[*at].as_ref().filter(|_| !is_by_hand);
        let rest = Rest::after(missed.miss(), before, now, missed.to_string());
        // One that missed twice rests once.
        rests.retain(|(known, _)| known != at);
        rests.push((*at, rest));
    }
    rests
}
