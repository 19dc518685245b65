//! Feedback on a requested fold for the user: the outcome, the sizes and the reason.

use std::fmt;

use crate::model::tokens::{Tokens, thousands};

/// The result of a requested fold: sizes, counts and the summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldReport {
    /// The size of the view before.
    pub before: Tokens,
    /// The size of the view after.
    pub after: Tokens,
    /// The maximum size of a view.
    pub room: Tokens,
    /// The number of folds.
    pub n_folds: usize,
    /// The reason for making no fold, if known.
    pub why_nothing: Option<String>,
    /// The outcome of the summary by a model.
    pub summary: SummaryStatus,
    /// True if a previous summary is in the view.
    pub has_previous_summary: bool,
}

/// The outcome of a summary by a model. The reasons are shown verbatim, so they must not contain secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SummaryStatus {
    /// No summary was requested.
    #[default]
    NotRequested,
    /// A summary of this size is in the view.
    Placed(Tokens),
    /// The summary was written, but does not fit the view.
    NoRoom {
        /// The size of the summary.
        tokens: Tokens,
        /// The free room.
        free: Tokens,
    },
    /// There is no summary for this reason; the view has only the record.
    FellBack(String),
    /// There is no summary for this reason, and nothing was folded without one.
    Aborted(String),
}

/// The status of a requested fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldStatus {
    /// Something was folded, or a summary was written.
    Folded,
    /// There was nothing to do.
    Nothing,
    /// The fold was aborted without changes.
    Aborted,
    /// The fold was made without the requested summary.
    FellBack,
}

impl FoldStatus {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FoldStatus::Folded => "folded",
            FoldStatus::Nothing => "nothing",
            FoldStatus::Aborted => "aborted",
            FoldStatus::FellBack => "fell_back",
        }
    }
}

/// Feedback on a requested fold for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feedback {
    /// The status.
    pub status: FoldStatus,
    /// The outcome in a few words.
    pub headline: String,
    /// The size of the view before and after.
    pub token_line: String,
    /// The reason or a remark, if any.
    pub note: Option<String>,
}

impl Feedback {
    /// Describes the result of a fold.
    pub fn new(report: &FoldReport) -> Feedback {
        let status = match (&report.summary, report.n_folds) {
            (SummaryStatus::Aborted(_), _) => FoldStatus::Aborted,
            (SummaryStatus::FellBack(_), _) => FoldStatus::FellBack,
            (SummaryStatus::Placed(_), _) => FoldStatus::Folded,
            (SummaryStatus::NotRequested, 0) => FoldStatus::Nothing,
            (SummaryStatus::NoRoom { .. }, 0) => FoldStatus::FellBack,
            (SummaryStatus::NotRequested | SummaryStatus::NoRoom { .. }, _) => FoldStatus::Folded,
        };
        let times = match report.n_folds {
            0 => "nothing was folded".to_owned(),
            1 => "folded once".to_owned(),
            n => format!("folded {} times", thousands(n as u64)),
        };
        let headline = match &report.summary {
            SummaryStatus::NotRequested => times,
            SummaryStatus::Placed(tokens) => format!("{times}, and a summary of {tokens} tokens was written"),
            SummaryStatus::NoRoom { .. } => format!("{times}, and a summary was written that does not fit"),
            SummaryStatus::FellBack(_) => format!("{times}, without a summary by a model"),
            SummaryStatus::Aborted(_) => "aborted; nothing was changed".to_owned(),
        };
        let FoldReport { before, after, room, .. } = report;
        let token_line = match before == after {
            true => format!("{before} tokens, unchanged, for a room of {room}"),
            false => format!("{before} → {after} tokens, for a room of {room}"),
        };
        Feedback { status, headline, token_line, note: note(report, status) }
    }
}

fn note(report: &FoldReport, status: FoldStatus) -> Option<String> {
    match (&report.summary, status) {
        (SummaryStatus::Aborted(why), _) => Some(why.clone()),
        (SummaryStatus::NoRoom { tokens, free }, _) => Some(format!(
            "the summary is not in the view: it has {tokens} tokens, and {free} are free; a larger --window makes room"
        )),
        (SummaryStatus::FellBack(why), _) if report.has_previous_summary => {
            Some(format!("{why}; the previous summary stays in the view, and nothing is lost"))
        }
        (SummaryStatus::FellBack(why), _) => {
            Some(format!("{why}; the record, which needs no model, is used instead, and nothing is lost"))
        }
        (_, FoldStatus::Nothing) => report.why_nothing.clone(),
        _ if report.after > report.before => {
            let more = report.after - report.before;
            Some(format!("the view is longer by {more} tokens, because it contains the summary"))
        }
        _ => None,
    }
}

impl fmt::Display for Feedback {
    /// The headline and the sizes on one line, and the note on another.
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

    fn check(report: FoldReport, status: FoldStatus, text: &str) {
        let report = FoldReport { before: Tokens(12_000), room: Tokens(20_000), ..report };
        let feedback = Feedback::new(&report);
        assert_eq!((feedback.status, feedback.to_string().as_str()), (status, text));
    }

    #[test]
    fn describes_each_outcome() {
        let after = Tokens(5_000);
        check(
            FoldReport { after, n_folds: 1, ..FoldReport::default() },
            FoldStatus::Folded,
            "folded once: 12,000 → 5,000 tokens, for a room of 20,000",
        );
        let why_nothing = Some("nothing old is left to fold".to_owned());
        check(
            FoldReport { after: Tokens(12_000), why_nothing, ..FoldReport::default() },
            FoldStatus::Nothing,
            "nothing was folded: 12,000 tokens, unchanged, for a room of 20,000\nnothing old is left to fold",
        );
        let summary = SummaryStatus::Placed(Tokens(900));
        check(
            FoldReport { after: Tokens(12_900), summary, ..FoldReport::default() },
            FoldStatus::Folded,
            "nothing was folded, and a summary of 900 tokens was written: 12,000 → 12,900 tokens, for a room of \
             20,000\nthe view is longer by 900 tokens, because it contains the summary",
        );
        let summary = SummaryStatus::FellBack("the model fell silent for 60 seconds".to_owned());
        check(
            FoldReport { after, n_folds: 3, summary, ..FoldReport::default() },
            FoldStatus::FellBack,
            "folded 3 times, without a summary by a model: 12,000 → 5,000 tokens, for a room of 20,000\nthe model \
             fell silent for 60 seconds; the record, which needs no model, is used instead, and nothing is lost",
        );
        let summary = SummaryStatus::FellBack("the model fell silent for 60 seconds".to_owned());
        check(
            FoldReport { after, n_folds: 1, summary, has_previous_summary: true, ..FoldReport::default() },
            FoldStatus::FellBack,
            "folded once, without a summary by a model: 12,000 → 5,000 tokens, for a room of 20,000\nthe model \
             fell silent for 60 seconds; the previous summary stays in the view, and nothing is lost",
        );
        let summary = SummaryStatus::NoRoom { tokens: Tokens(900), free: Tokens(70) };
        check(
            FoldReport { after: Tokens(12_000), summary, ..FoldReport::default() },
            FoldStatus::FellBack,
            "nothing was folded, and a summary was written that does not fit: 12,000 tokens, unchanged, for a room \
             of 20,000\nthe summary is not in the view: it has 900 tokens, and 70 are free; a larger --window makes \
             room",
        );
        let summary = SummaryStatus::Aborted("the key in WRITER_KEY was not accepted".to_owned());
        check(
            FoldReport { after: Tokens(12_000), summary, ..FoldReport::default() },
            FoldStatus::Aborted,
            "aborted; nothing was changed: 12,000 tokens, unchanged, for a room of 20,000\nthe key in WRITER_KEY \
             was not accepted",
        );
    }
}
