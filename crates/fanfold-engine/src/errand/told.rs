//! How an errand ended, in words: what happened, and what to do.

use std::fmt;

use fanfold_core::Tokens;
use fanfold_core::summary::Flaw;
use fanfold_provider::Fault;
use fanfold_redact::redact;
use fanfold_store::Millis;

use super::chain::Miss;

/// The most letters of what is told of a flaw.
const LONGEST: usize = 220;

/// How an errand ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// A summary was written.
    Written(Written),
    /// There is nothing to summarise.
    Nothing,
    /// No model is set.
    NotSet,
    /// Those that are set failed not long ago, and rest.
    Resting {
        /// Until when.
        until: Millis,
        /// What went wrong.
        why: String,
    },
    /// Somebody else is writing one.
    Busy(String),
    /// The conversation went elsewhere in the meantime: what was written is of no use to it.
    Overtaken,
    /// Every model failed: the digest stands alone.
    Digest(Vec<Missed>),
    /// Nothing was changed.
    Aborted(Vec<Missed>),
}

/// A summary that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// By which model.
    pub model: String,
    /// Which of the models it is, from 0.
    pub at: usize,
    /// What it costs in a view.
    pub tokens: Tokens,
    /// In how many answers.
    pub n_answers: usize,
    /// What went wrong before.
    pub missed: Vec<Missed>,
}

/// Why a model gave no summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missed {
    /// It did not answer as it should.
    Fault(Fault),
    /// It answered, twice, and neither was a summary.
    Flawed {
        /// The model.
        model: String,
        /// What is wrong with what it wrote last.
        flaws: Vec<Flaw>,
    },
}

impl Missed {
    pub(crate) fn miss(&self) -> Miss {
        match self {
            Missed::Fault(fault) => Miss::Fault(fault.class, fault.retry_after),
            Missed::Flawed { .. } => Miss::Flawed,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Missed::Fault(fault) => fault.hint(),
            Missed::Flawed { .. } => {
                "set another `model` in [summary]: this one does not write what is asked for".to_owned()
            }
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missed::Fault(fault) => fault.fmt(f),
            Missed::Flawed { model, flaws } => {
                let flaws: Vec<String> = flaws.iter().map(ToString::to_string).collect();
                // What a model wrote may be long, and is the model's.
                let flaws = redact(&flaws.join("; ")).chars().take(LONGEST).collect::<String>();
                write!(f, "{model} wrote no summary that will do: {flaws}")
            }
        }
    }
}

impl Ended {
    /// What to do about it, if anything is.
    pub fn hint(&self) -> Option<String> {
        match self {
            Ended::Written(written) => written.missed.first().map(Missed::hint),
            Ended::Nothing | Ended::Overtaken | Ended::Busy(_) => None,
            Ended::NotSet => {
                Some("set `model` in [summary] of your settings (`fanfold config path`)".to_owned())
            }
            Ended::Resting { .. } => Some("`fanfold fold --summarise` asks all the same".to_owned()),
            Ended::Digest(missed) | Ended::Aborted(missed) => missed.last().map(Missed::hint),
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ended::Written(Written { model, tokens, missed, .. }) => {
                write!(f, "{model} wrote a summary of {tokens} tokens")?;
                if missed.is_empty() { Ok(()) } else { write!(f, "; what failed: {}", list(missed)) }
            }
            Ended::Nothing => f.write_str("there is nothing to summarise"),
            Ended::NotSet => f.write_str("no model is set that writes summaries"),
            Ended::Resting { until, why } => write!(f, "no summary is asked for until {until}: {why}"),
            Ended::Busy(holder) => write!(f, "{holder} is writing a summary of this session"),
            Ended::Overtaken => f.write_str("the conversation went elsewhere while its summary was written"),
            Ended::Digest(missed) => write!(f, "the digest stands alone: {}", list(missed)),
            Ended::Aborted(missed) => {
                write!(f, "no summary was written, and nothing was changed: {}", list(missed))
            }
        }
    }
}

fn list(missed: &[Missed]) -> String {
    let all: Vec<String> = missed.iter().map(ToString::to_string).collect();
    all.join("; then ")
}
