//! What a person hears of a fold that they asked for: what came of it, the sizes, and why.

use std::fmt;

use crate::model::tokens::{Tokens, thousands};

/// What happened when somebody asked for a fold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// What the view cost before.
    pub before: Tokens,
    /// What it costs now.
    pub after: Tokens,
    /// What a request may cost.
    pub room: Tokens,
    /// How many folds were made.
    pub n_folds: usize,
    /// Why none was made, where that is known.
    pub why_nothing: Option<String>,
    /// What became of a summary by a model.
    pub summary: Written,
    /// Whether an earlier one stands in the view.
    pub has_earlier: bool,
}

/// What became of a summary by a model. The words are shown as they are: secrets are taken out before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Written {
    /// Nobody asked for one.
    #[default]
    NotAsked,
    /// It was written, and costs so much.
    Yes(Tokens),
    /// It was written, and does not stand in the view.
    NoRoom {
        /// What it would cost there.
        tokens: Tokens,
        /// What is free for it.
        free: Tokens,
    },
    /// None came, and the digest stands alone: why.
    Instead(String),
    /// None came, and nothing was to be changed without one: why.
    Aborted(String),
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Something was folded, or a summary was written.
    Folded,
    /// There was nothing to do.
    Nothing,
    /// It was given up, and nothing is changed.
    Aborted,
    /// It was done without the summary that was asked for.
    FellBack,
}

impl Ended {
    /// The word for it, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Ended::Folded => "folded",
            Ended::Nothing => "nothing",
            Ended::Aborted => "aborted",
            Ended::FellBack => "fell_back",
        }
    }
}

/// What a person hears of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// What came of it.
    pub ended: Ended,
    /// The same in a few words.
    pub headline: String,
    /// What the view cost and costs.
    pub token_line: String,
    /// Why, or what to know of it, if there is anything.
    pub note: Option<String>,
}

impl Feedback {
    /// What a person hears of what happened.
    pub fn of(asked: &Asked) -> Feedback {
        let ended = match (&asked.summary, asked.n_folds) {
            (Written::Aborted(_), _) => Ended::Aborted,
            (Written::Instead(_), _) => Ended::FellBack,
            (Written::Yes(_), _) => Ended::Folded,
            (Written::NotAsked, 0) => Ended::Nothing,
            (Written::NoRoom { .. }, 0) => Ended::FellBack,
            (Written::NotAsked | Written::NoRoom { .. }, _) => Ended::Folded,
        };
        let times = match asked.n_folds {
            0 => "nothing was folded".to_owned(),
            1 => "folded once".to_owned(),
            n => format!("folded {} times", thousands(n as u64)),
        };
        let headline = match &asked.summary {
            Written::NotAsked => times,
            Written::Yes(tokens) => format!("{times}, and a summary of {tokens} tokens was written"),
            Written::NoRoom { .. } => format!("{times}, and a summary was written that does not fit"),
            Written::Instead(_) => format!("{times}, without a summary by a model"),
            Written::Aborted(_) => "given up; nothing was changed".to_owned(),
        };
        let Asked { before, after, room, .. } = asked;
        let token_line = match before == after {
            true => format!("{before} tokens, unchanged, for a room of {room}"),
            false => format!("{before} → {after} tokens, for a room of {room}"),
        };
        Feedback { ended, headline, token_line, note: note(asked, ended) }
    }
}

fn note(asked: &Asked, ended: Ended) -> Option<String> {
    match (&asked.summary, ended) {
        (Written::Aborted(why), _) => Some(why.clone()),
        (Written::NoRoom { tokens, free }, _) => Some(format!(
            "the summary does not stand in the view: it has {tokens} tokens, and {free} are free; a larger --window would do"
        )),
        (Written::Instead(why), _) if asked.has_earlier => {
            Some(format!("{why}; the summary from before stays where it is, and nothing is lost"))
        }
        (Written::Instead(why), _) => {
            Some(format!("{why}; the digest, which needs no model, stands in its place, and nothing is lost"))
        }
        (_, Ended::Nothing) => asked.why_nothing.clone(),
        _ if asked.after > asked.before => {
            let more = asked.after - asked.before;
            Some(format!("the view is longer by {more} tokens: what was written stands in it"))
        }
        _ => None,
    }
}

impl fmt::Display for Feedback {
    /// One line, and one more if there is something to know.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.headline, self.token_line)?;
        match &self.note {
            Some(note) => write!(f, "\n{note}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: Asked, ended: Ended, words: &str) {
        let asked = Asked { before: Tokens(12_000), room: Tokens(20_000), ..asked };
        let feedback = Feedback::of(&asked);
        assert_eq!((feedback.ended, feedback.to_string().as_str()), (ended, words));
    }

    #[test]
    fn each_ending_has_its_words() {
        let after = Tokens(5_000);
        check(
            Asked { after, n_folds: 1, ..Asked::default() },
            Ended::Folded,
            "folded once: 12,000 → 5,000 tokens, for a room of 20,000",
        );
        let why_nothing = Some("nothing old is left to fold".to_owned());
        check(
            Asked { after: Tokens(12_000), why_nothing, ..Asked::default() },
            Ended::Nothing,
            "nothing was folded: 12,000 tokens, unchanged, for a room of 20,000\nnothing old is left to fold",
        );
        let summary = Written::Yes(Tokens(900));
        check(
            Asked { after: Tokens(12_900), summary, ..Asked::default() },
            Ended::Folded,
            "nothing was folded, and a summary of 900 tokens was written: 12,000 → 12,900 tokens, for a room of \
             20,000\nthe view is longer by 900 tokens: what was written stands in it",
        );
        let summary = Written::Instead("the model fell silent for 60 seconds".to_owned());
        check(
            Asked { after, n_folds: 3, summary, ..Asked::default() },
            Ended::FellBack,
            "folded 3 times, without a summary by a model: 12,000 → 5,000 tokens, for a room of 20,000\nthe model \
             fell silent for 60 seconds; the digest, which needs no model, stands in its place, and nothing is lost",
        );
        let summary = Written::Instead("the model fell silent for 60 seconds".to_owned());
        check(
            Asked { after, n_folds: 1, summary, has_earlier: true, ..Asked::default() },
            Ended::FellBack,
            "folded once, without a summary by a model: 12,000 → 5,000 tokens, for a room of 20,000\nthe model \
             fell silent for 60 seconds; the summary from before stays where it is, and nothing is lost",
        );
        let summary = Written::NoRoom { tokens: Tokens(900), free: Tokens(70) };
        check(
            Asked { after: Tokens(12_000), summary, ..Asked::default() },
            Ended::FellBack,
            "nothing was folded, and a summary was written that does not fit: 12,000 tokens, unchanged, for a room \
             of 20,000\nthe summary does not stand in the view: it has 900 tokens, and 70 are free; a larger --window would do",
        );
        let summary = Written::Aborted("the key in WRITER_KEY was not accepted".to_owned());
        check(
            Asked { after: Tokens(12_000), summary, ..Asked::default() },
            Ended::Aborted,
            "given up; nothing was changed: 12,000 tokens, unchanged, for a room of 20,000\nthe key in WRITER_KEY \
             was not accepted",
        );
    }
}
