//! What is wrong with an answer, each thing by its name.

use std::fmt;

use crate::model::tokens::{Count, Tokens};
use crate::summary::critical::Reference;
use crate::summary::quotes::{made_up, normal};
use crate::summary::refusal::refusal_in;
use crate::summary::sections::{NOTHING, Sections};

/// Something that is wrong with a summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// There is nothing in it.
    Empty,
    /// It was cut off at the limit of its length.
    Cut,
    /// The model refused; its words.
    Refused(String),
    /// It is longer than what it stands for, or than it may be.
    TooLong {
        /// What it costs.
        tokens: Tokens,
        /// What it may cost.
        most: Tokens,
    },
    /// Headings that are not there.
    NoHeadings(Vec<&'static str>),
    /// Fewer than half of what must not be missing stands in it.
    FewReferences {
        /// How many do.
        found: usize,
        /// How many there are.
        of: usize,
        /// Those that do not.
        missing: Vec<String>,
    },
    /// Words are told as the user's that no user said.
    MadeUpQuotes(Vec<String>),
}

impl Flaw {
    /// Its name, as a counter or a log has it.
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

/// What an answer is held against.
pub(crate) struct Measure<'a> {
    pub(crate) counter: &'a dyn Count,
    /// What it may cost.
    pub(crate) most: Tokens,
    /// What must not be missing.
    pub(crate) critical: &'a [Reference],
    /// What people said, by its words alone.
    pub(crate) said: &'a [String],
    /// What the model was shown.
    pub(crate) shown: &'a str,
    /// How many headings may be missing.
    pub(crate) may_miss: usize,
}

/// An answer by its sections, or what is wrong with it.
pub(crate) fn judge(answer: &str, by: &Measure<'_>) -> Result<Sections, Vec<Flaw>> {
    if answer.trim().is_empty() {
        return Err(vec![Flaw::Empty]);
    }
    let sections = Sections::read(answer);
    if let Some(words) = refusal_in(answer, &sections) {
        return Err(vec![Flaw::Refused(words)]);
    }
    let says_nothing = |(_, words): (usize, &str)| matches!(words.trim(), "" | NOTHING);
    if sections.n_found() > 0 && sections.each().all(says_nothing) {
        return Err(vec![Flaw::Empty]);
    }
    let mut flaws = Vec::new();
    let tokens = by.counter.count(answer);
    if tokens > by.most {
        flaws.push(Flaw::TooLong { tokens, most: by.most });
    }
    let missing = sections.missing();
    if missing.len() > by.may_miss {
        flaws.push(Flaw::NoHeadings(missing));
    }
    let absent: Vec<&Reference> = by.critical.iter().filter(|one| !one.stands_in(answer)).collect();
    let found = by.critical.len() - absent.len();
    if found * 2 < by.critical.len() {
        let missing = absent.iter().map(|one| one.text.clone()).collect();
        flaws.push(Flaw::FewReferences { found, of: by.critical.len(), missing });
    }
    let quotes = made_up(&sections, by.said, &normal(by.shown));
    if !quotes.is_empty() {
        flaws.push(Flaw::MadeUpQuotes(quotes));
    }
    if flaws.is_empty() { Ok(sections) } else { Err(flaws) }
}
