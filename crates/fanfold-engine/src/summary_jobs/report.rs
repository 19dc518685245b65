//! How an errand ended, in words: what happened, and what to do.

use std::fmt;

use fanfold_core::Tokens;
use fanfold_core::summary::Flaw;
use fanfold_provider::ProviderError;
use fanfold_redact::redact;
use fanfold_store::Millis;

use super::fallback::Miss;

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
    Fault(ProviderError),
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

    /// The model that was asked.
    pub fn model(&self) -> &str {
        match self {
            Missed::Fault(fault) => &fault.target.model,
            Missed::Flawed { model, .. } => model,
        }
    }

    /// It in a word, as labels have it.
    pub fn name(&self) -> &'static str {
        match self {
            Missed::Fault(fault) => fault.class.name(),
            Missed::Flawed { .. } => "flawed",
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
                write!(f, "{model} wrote no summary that will do: {}", short(&redact(&flaws.join("; "))))
            }
        }
    }
}

/// The beginning of a text, up to the end of a word.
fn short(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(LONGEST) else { return text.to_owned() };
    let whole = text[..end].rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{} …", text[..whole].trim_end_matches([' ', ',', ';']))
}

impl Ended {
    /// The word for it, as JSON has it.
    pub fn name(&self) -> &'static str {
        match self {
            Ended::Written(_) => "written",
            Ended::Nothing => "nothing",
            Ended::NotSet => "not_set",
            Ended::Resting { .. } => "resting",
            Ended::Busy(_) => "busy",
            Ended::Overtaken => "overtaken",
            Ended::Digest(_) => "digest",
            Ended::Aborted(_) => "aborted",
        }
    }

    /// Who gave no summary, and why, in the order in which they were asked.
    pub fn missed(&self) -> &[Missed] {
        match self {
            Ended::Written(Written { missed, .. }) | Ended::Digest(missed) | Ended::Aborted(missed) => missed,
            Ended::Nothing | Ended::NotSet | Ended::Overtaken | Ended::Resting { .. } | Ended::Busy(_) => &[],
        }
    }

    /// What went wrong, each with who it was; nothing where all went well.
    pub fn why(&self) -> String {
        list(self.missed())
    }

    /// What to do about it, if anything is.
    pub fn hint(&self) -> Option<String> {
        match self {
            Ended::Nothing | Ended::Overtaken | Ended::Busy(_) => None,
            Ended::NotSet => {
                Some("set `model` in [summary] of your settings (`fanfold config path`)".to_owned())
            }
            Ended::Resting { .. } => Some("`fanfold fold --summarise` asks all the same".to_owned()),
            Ended::Written(Written { missed, .. }) | Ended::Digest(missed) | Ended::Aborted(missed) => {
                hints(missed)
            }
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

/// What to do about all of them, each thing once.
fn hints(missed: &[Missed]) -> Option<String> {
    let mut hints: Vec<String> = Vec::new();
    for hint in missed.iter().map(Missed::hint) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    (!hints.is_empty()).then(|| hints.join("; "))
}

fn list(missed: &[Missed]) -> String {
    let all: Vec<String> = missed.iter().map(ToString::to_string).collect();
    all.join("; then ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_provider::ErrorClass;

    #[test]
    fn a_long_list_of_flaws_ends_behind_a_word() {
        let quotes = vec!["please drop the production tables tonight".to_owned(); 9];
        let missed = Missed::Flawed { model: "m".to_owned(), flaws: vec![Flaw::MadeUpQuotes(quotes)] };
        let told = missed.to_string();
        assert!(told.ends_with(" …") && told.chars().count() < LONGEST + 60, "{told}");
        let last = told.trim_end_matches(" …").rsplit(' ').next().unwrap_or_default();
        assert!(
            ["please", "drop", "the", "production", "tables", "tonight"].contains(&last.trim_matches('"')),
            "{told}"
        );
        assert_eq!(short("few words"), "few words");
    }

    #[test]
    fn what_to_do_is_said_of_each_that_failed_and_once() {
        let fault = |class| Missed::Fault(ProviderError::new(class, "no"));
        let (first, second) = (fault(ErrorClass::Timeout), fault(ErrorClass::Auth));
        let ended = Ended::Digest(vec![first.clone(), second.clone(), first.clone()]);
        assert_eq!(ended.hint(), Some(format!("{}; {}", first.hint(), second.hint())));
    }
}
