//! Checks an answer and names its flaws.

use std::fmt;

use crate::model::tokens::{Count, Tokens};
use crate::summary::critical::Reference;
use crate::summary::quotes::{invented_quotes, normalize};
use crate::summary::refusal::refusal_in;
use crate::summary::sections::{NOTHING, Sections};

/// A flaw of a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// The summary is empty.
    Empty,
    /// The answer was truncated at its maximum length.
    Cut,
    /// The model refused, with its words.
    Refused(String),
    /// It is longer than allowed, or than what it replaces.
    TooLong {
        /// The cost.
        tokens: Tokens,
        /// The maximum cost.
        most: Tokens,
    },
    /// Headings are missing.
    NoHeadings(Vec<&'static str>),
    /// Fewer than half of the critical references appear in it.
    FewReferences {
        /// The number of references found.
        found: usize,
        /// The number of critical references.
        of: usize,
        /// The missing references.
        missing: Vec<String>,
    },
    /// Quotes attributed to the user that no user wrote.
    MadeUpQuotes(Vec<String>),
}

impl Flaw {
    /// The name in counters and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Flaw::Empty => "empty",
            Flaw::Cut => "cut",
            Flaw::Refused(_) => "refused",
            Flaw::TooLong { .. } => "too_long",
            Flaw::NoHeadings(_) => "no_headings",
            Flaw::FewReferences { .. } => "few_references",
            Flaw::MadeUpQuotes(_) => "made_up_quotes",
        }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Flaw::Empty => f.write_str("the summary is empty"),
            Flaw::Cut => f.write_str("the answer was cut off before its end, and must be shorter"),
            Flaw::Refused(words) => write!(f, "the model refused: {words}"),
            Flaw::TooLong { tokens, most } => {
                write!(f, "the summary has {tokens} tokens and may have {most}")
            }
            Flaw::NoHeadings(headings) => write!(f, "these headings are missing: {}", headings.join(", ")),
            Flaw::FewReferences { found, of, .. } => {
                write!(f, "only {found} of {of} paths, errors and ids that matter stand in the summary")
            }
            Flaw::MadeUpQuotes(quotes) => {
                write!(
                    f,
                    "the user never said: {}",
                    quotes.iter().map(|quote| format!("\"{quote}\"")).collect::<Vec<_>>().join(", ")
                )
            }
        }
    }
}

/// The criteria for an answer.
pub(crate) struct Criteria<'a> {
    pub(crate) counter: &'a dyn Count,
    /// The maximum cost.
    pub(crate) most: Tokens,
    /// The references that have to appear.
    pub(crate) critical: &'a [Reference],
    /// The user messages, normalised.
    pub(crate) user_messages: &'a [String],
    /// The text that the model was shown.
    pub(crate) shown: &'a str,
    /// The number of headings that may be missing.
    pub(crate) n_may_miss: usize,
}

/// Parses an answer into sections, or returns its flaws.
pub(crate) fn check_answer(answer: &str, criteria: &Criteria<'_>) -> Result<Sections, Vec<Flaw>> {
    if answer.trim().is_empty() {
        return Err(vec![Flaw::Empty]);
    }
    let sections = Sections::parse(answer);
    if let Some(words) = refusal_in(answer, &sections) {
        return Err(vec![Flaw::Refused(words)]);
    }
    let is_empty = |(_, words): (usize, &str)| matches!(words.trim(), "" | NOTHING);
    if sections.n_found() > 0 && sections.each().all(is_empty) {
        return Err(vec![Flaw::Empty]);
    }
    let mut flaws = Vec::new();
    let tokens = criteria.counter.count(answer);
    if tokens > criteria.most {
        flaws.push(Flaw::TooLong { tokens, most: criteria.most });
    }
    let missing = sections.missing();
    if missing.len() > criteria.n_may_miss {
        flaws.push(Flaw::NoHeadings(missing));
    }
    let absent: Vec<&Reference> = criteria.critical.iter().filter(|one| !one.appears_in(answer)).collect();
    let found = criteria.critical.len() - absent.len();
    if found * 2 < criteria.critical.len() {
        let missing = absent.iter().map(|one| one.text.clone()).collect();
        flaws.push(Flaw::FewReferences { found, of: criteria.critical.len(), missing });
    }
    let quotes = invented_quotes(&sections, criteria.user_messages, &normalize(criteria.shown));
    if !quotes.is_empty() {
        flaws.push(Flaw::MadeUpQuotes(quotes));
    }
    if flaws.is_empty() { Ok(sections) } else { Err(flaws) }
}
