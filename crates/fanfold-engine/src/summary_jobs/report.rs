//! The outcome of a summary job, with messages and hints for people.

use std::fmt;

use fanfold_core::Tokens;
use fanfold_core::summary::Flaw;
use fanfold_provider::ProviderError;
use fanfold_redact::redact;
use fanfold_store::Millis;

use super::fallback::FailureKind;

/// Maximum length of the flaws in a message, in characters.
const MAX_CHARS: usize = 220;

/// The outcome of a summary job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutcome {
    /// A summary was written.
    Written(WrittenSummary),
    /// No folded step lacks a summary.
    NothingToDo,
    /// No model is configured.
    NoModel,
    /// The models failed recently and are in backoff.
    BackingOff {
        /// The end of the backoff.
        until: Millis,
        /// The failure that caused it.
        why: String,
    },
    /// Another process is writing a summary of the session: the holder of the lock.
    Busy(String),
    /// The conversation changed in the meantime, so the summary does not apply to it.
    Overtaken,
    /// Every model failed, and the view has only the record.
    Digest(Vec<ModelFailure>),
    /// The job failed, and nothing was changed.
    Aborted(Vec<ModelFailure>),
}

/// A summary that was written, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenSummary {
    /// The model that wrote it.
    pub model: String,
    /// The index of the model in the list of models.
    pub model_index: usize,
    /// The size of the summary.
    pub tokens: Tokens,
    /// The number of answers that it took.
    pub n_answers: usize,
    /// The failures before it.
    pub failures: Vec<ModelFailure>,
}

/// Why a model wrote no summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFailure {
    /// The provider failed.
    Provider(ProviderError),
    /// Both answers of the model were rejected.
    Rejected {
        /// The model.
        model: String,
        /// The flaws of its last answer.
        flaws: Vec<Flaw>,
    },
}

impl ModelFailure {
    pub(crate) fn kind(&self) -> FailureKind {
        match self {
            ModelFailure::Provider(error) => FailureKind::Provider(error.class, error.retry_after),
            ModelFailure::Rejected { .. } => FailureKind::Rejected,
        }
    }

    /// The model that failed.
    pub fn model(&self) -> &str {
        match self {
            ModelFailure::Provider(error) => &error.target.model,
            ModelFailure::Rejected { model, .. } => model,
        }
    }

    /// The name of the failure, as used in JSON and metric labels.
    pub fn name(&self) -> &'static str {
        match self {
            ModelFailure::Provider(error) => error.class.name(),
            ModelFailure::Rejected { .. } => "flawed",
        }
    }

    /// A hint for the user.
    pub fn hint(&self) -> String {
        match self {
            ModelFailure::Provider(error) => error.hint(),
            ModelFailure::Rejected { .. } => {
                "set another `model` in [summary]: this one writes no valid summaries".to_owned()
            }
        }
    }
}

impl fmt::Display for ModelFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelFailure::Provider(error) => error.fmt(f),
            ModelFailure::Rejected { model, flaws } => {
                let flaws: Vec<String> = flaws.iter().map(ToString::to_string).collect();
                // Flaws quote the model's answer, which may be long and contain secrets.
                write!(f, "{model} wrote no valid summary: {}", shorten(&redact(&flaws.join("; "))))
            }
        }
    }
}

/// The first `MAX_CHARS` characters of a text, cut at the end of a word if one is near.
fn shorten(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_CHARS) else { return text.to_owned() };
    let end = text[..end].rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{} …", text[..end].trim_end_matches([' ', ',', ';']))
}

impl JobOutcome {
    /// The name of the outcome, as used in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            JobOutcome::Written(_) => "written",
            JobOutcome::NothingToDo => "nothing",
            JobOutcome::NoModel => "not_set",
            JobOutcome::BackingOff { .. } => "resting",
            JobOutcome::Busy(_) => "busy",
            JobOutcome::Overtaken => "overtaken",
            JobOutcome::Digest(_) => "digest",
            JobOutcome::Aborted(_) => "aborted",
        }
    }

    /// The failures of models, in call order.
    pub fn failures(&self) -> &[ModelFailure] {
        match self {
            JobOutcome::Written(WrittenSummary { failures, .. })
            | JobOutcome::Digest(failures)
            | JobOutcome::Aborted(failures) => failures,
            JobOutcome::NothingToDo
            | JobOutcome::NoModel
            | JobOutcome::Overtaken
            | JobOutcome::BackingOff { .. }
            | JobOutcome::Busy(_) => &[],
        }
    }

    /// All failures as one line; empty after a job without failures.
    pub fn describe_failures(&self) -> String {
        join(self.failures())
    }

    /// A hint for the user, if there is something to do.
    pub fn hint(&self) -> Option<String> {
        match self {
            JobOutcome::NothingToDo | JobOutcome::Overtaken | JobOutcome::Busy(_) => None,
            JobOutcome::NoModel => {
                Some("set `model` in [summary] of your settings (`fanfold config path`)".to_owned())
            }
            JobOutcome::BackingOff { .. } => {
                Some("`fanfold fold --summarise` requests a summary regardless".to_owned())
            }
            JobOutcome::Written(WrittenSummary { failures, .. })
            | JobOutcome::Digest(failures)
            | JobOutcome::Aborted(failures) => hints(failures),
        }
    }
}

impl fmt::Display for JobOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobOutcome::Written(WrittenSummary { model, tokens, failures, .. }) => {
                write!(f, "{model} wrote a summary of {tokens} tokens")?;
                if failures.is_empty() { Ok(()) } else { write!(f, "; before that: {}", join(failures)) }
            }
            JobOutcome::NothingToDo => f.write_str("there is nothing to summarise"),
            JobOutcome::NoModel => f.write_str("no model is set that writes summaries"),
            JobOutcome::BackingOff { until, why } => {
                write!(f, "no summary is requested until {until}: {why}")
            }
            JobOutcome::Busy(holder) => write!(f, "{holder} is writing a summary of this session"),
            JobOutcome::Overtaken => f.write_str("the conversation changed while its summary was written"),
            JobOutcome::Digest(failures) => {
                write!(f, "no summary was written, so the record is used alone: {}", join(failures))
            }
            JobOutcome::Aborted(failures) => {
                write!(f, "no summary was written, and nothing was changed: {}", join(failures))
            }
        }
    }
}

/// The hints of all failures, without duplicates.
fn hints(failures: &[ModelFailure]) -> Option<String> {
    let mut hints: Vec<String> = Vec::new();
    for hint in failures.iter().map(ModelFailure::hint) {
        if !hints.contains(&hint) {
            hints.push(hint);
        }
    }
    (!hints.is_empty()).then(|| hints.join("; "))
}

fn join(failures: &[ModelFailure]) -> String {
    let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
    all.join("; then ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_provider::ErrorClass;

    #[test]
    fn a_long_list_of_flaws_is_cut_after_a_word() {
        let quotes = vec!["please drop the production tables tonight".to_owned(); 9];
        let failure =
            ModelFailure::Rejected { model: "m".to_owned(), flaws: vec![Flaw::MadeUpQuotes(quotes)] };
        let message = failure.to_string();
        assert!(message.ends_with(" …") && message.chars().count() < MAX_CHARS + 60, "{message}");
        let last = message.trim_end_matches(" …").rsplit(' ').next().unwrap_or_default();
        assert!(
            ["please", "drop", "the", "production", "tables", "tonight"].contains(&last.trim_matches('"')),
            "{message}"
        );
        assert_eq!(shorten("few words"), "few words");
    }

    #[test]
    fn the_hint_contains_the_hint_of_each_failure_once() {
        let failure = |class| ModelFailure::Provider(ProviderError::new(class, "no"));
        let (first, second) = (failure(ErrorClass::Timeout), failure(ErrorClass::Auth));
        let outcome = JobOutcome::Digest(vec![first.clone(), second.clone(), first.clone()]);
        assert_eq!(outcome.hint(), Some(format!("{}; {}", first.hint(), second.hint())));
    }
}
