//! `fold --summarise`: a requested fold with a summary by a model.

use fanfold_core::summary::Flaw;
use fanfold_core::{Event, Feedback, FoldReport, SummaryStatus, Tokens};
use fanfold_engine::{
    Clock as _, FoldedConversation, JobOutcome, MachineClock, PendingSummary, SessionEngine, SummaryModels,
    SummaryProgress, SummaryTask, summarise_unstored,
};
use fanfold_store::SessionId;

use crate::failure::{Failure, Result};
use crate::settings::Options;
use crate::setup::summary_models;
use crate::terminal::{Reporter, paint, style, text};

/// The outcome of a requested summary.
pub(crate) struct SummaryOutcome {
    pub(crate) ended: JobOutcome,
    /// The flaws of all answers, including rejected ones.
    pub(crate) flaws: Vec<Flaw>,
    /// True if the summary is in the view.
    pub(crate) is_placed: bool,
}

/// Summarises and folds a conversation that is not stored.
pub(super) fn unstored(
    followed: &mut FoldedConversation,
    options: &Options,
    reporter: Reporter,
) -> Result<SummaryOutcome> {
    let ways = summary_models::ways(options)?;
    let sizes = ViewSizes::measure(followed);
    let focus = options.focus.as_deref().unwrap_or_default();
    let mut flaws = Vec::new();
    let (summary, ended) =
        summarise_unstored(&*followed.session, focus, &ways, MachineClock.now(), &mut |progress| {
            report_progress(progress, &mut flaws, reporter);
        });
    check_ended(&ended)?;
    if let Some(summary) = summary {
        followed.session.apply(Event::SummaryWritten(summary));
    }
    if !matches!(ended, JobOutcome::NothingToDo) {
        followed.session.apply(Event::FoldRequested { range: None });
    }
    let is_placed = report(&sizes, followed, &ended, reporter);
    Ok(SummaryOutcome { ended, flaws, is_placed })
}

/// A summary for a stored session, written before anything is stored or folded.
pub(super) struct StoredSummary {
    ways: SummaryModels,
    focus: String,
    ended: JobOutcome,
    flaws: Vec<Flaw>,
    pending: Option<PendingSummary>,
}

impl StoredSummary {
    /// Has a summary written. A failure leaves the session unchanged.
    pub(super) fn request(
        engine: &SessionEngine,
        session: &SessionId,
        followed: &FoldedConversation,
        options: &Options,
        reporter: Reporter,
    ) -> Result<StoredSummary> {
        let ways = summary_models::ways(options)?;
        let focus = options.focus.clone().unwrap_or_default();
        let wanted = SummaryTask { session, focus: &focus, is_by_hand: true };
        let mut flaws = Vec::new();
        let (ended, pending) =
            engine.summarise_before_storing(&wanted, followed, &ways, &mut |progress| {
                report_progress(progress, &mut flaws, reporter);
            })?;
        check_ended(&ended)?;
        Ok(StoredSummary { ways, focus, ended, flaws, pending })
    }

    /// Stores the summary in the session, which must be stored by now. The next view contains it.
    pub(super) fn store(
        &self,
        engine: &SessionEngine,
        session: &SessionId,
    ) -> Result<(JobOutcome, ViewSizes)> {
        let sizes = engine.with_cached(session, ViewSizes::measure).unwrap_or_default();
        let Some(pending) = &self.pending else { return Ok((self.ended.clone(), sizes)) };
        let wanted = SummaryTask { session, focus: &self.focus, is_by_hand: true };
        let ended = engine.store_summary(&wanted, &self.ways, pending)?;
        check_ended(&ended)?;
        Ok((ended, sizes))
    }

    pub(super) fn into_outcome(self, ended: JobOutcome, is_placed: bool) -> SummaryOutcome {
        SummaryOutcome { ended, flaws: self.flaws, is_placed }
    }
}

/// Fails if the summary ended in a way that prevents the fold.
fn check_ended(ended: &JobOutcome) -> Result<()> {
    match ended {
        JobOutcome::Written(_) | JobOutcome::NothingToDo | JobOutcome::Digest(_) => Ok(()),
        JobOutcome::NoModel
        | JobOutcome::Aborted(_)
        | JobOutcome::Busy(_)
        | JobOutcome::Overtaken
        | JobOutcome::BackingOff { .. } => {
            let hint = ended.hint().unwrap_or_else(|| "try again later".to_owned());
            Err(Failure::new(ended.to_string(), hint))
        }
    }
}

/// Reports progress, and collects the flaws of answers.
fn report_progress(progress: &SummaryProgress, flaws: &mut Vec<Flaw>, reporter: Reporter) {
    let line = match progress {
        SummaryProgress::Asking { model, number: 1 } => format!("requesting a summary from {model}"),
        SummaryProgress::Asking { model, number } => {
            format!("requesting a summary from {model}, request {number}")
        }
        SummaryProgress::Rejected(found) => {
            flaws.extend(found.iter().cloned());
            return;
        }
        SummaryProgress::Failed(missed) => format!("{missed}"),
    };
    reporter.line(text![paint(style::DIM, "summary:"), " ", line]);
}

/// The size of a conversation's view, and the number of its folds.
#[derive(Debug, Default)]
pub(super) struct ViewSizes {
    view: Tokens,
    n_folds: usize,
}

impl ViewSizes {
    fn measure(followed: &mut FoldedConversation) -> ViewSizes {
        let _ = followed.view();
        let ledger = followed.session.ledger();
        ViewSizes { view: followed.session.status().tokens, n_folds: ledger.receipts().len() }
    }
}

/// Reports the outcome of a summary and its fold. Returns whether the summary is in the view.
pub(super) fn report(
    before: &ViewSizes,
    followed: &mut FoldedConversation,
    ended: &JobOutcome,
    reporter: Reporter,
) -> bool {
    let after = ViewSizes::measure(followed);
    let ledger = followed.session.ledger();
    let n_summaries = ledger.summaries().count();
    let in_view = ledger.summary_in_view().map(|placed| placed.number + 1);
    let room = followed.session.budget().room();
    let summary = match ended {
        JobOutcome::Written(written) if in_view == Some(n_summaries) => SummaryStatus::Placed(written.tokens),
        // A summary must leave some room free, because one in a full view would be folded at once.
        JobOutcome::Written(written) => {
            SummaryStatus::NoRoom { tokens: written.tokens, free: room.permille(950) - after.view }
        }
        JobOutcome::Digest(_) => SummaryStatus::FellBack(ended.describe_failures()),
        _ => SummaryStatus::NotRequested,
    };
    let asked = FoldReport {
        before: before.view,
        after: after.view,
        room,
        n_folds: after.n_folds.saturating_sub(before.n_folds),
        why_nothing: matches!(ended, JobOutcome::NothingToDo).then(|| ended.to_string()),
        summary,
        has_previous_summary: in_view.is_some(),
    };
    let feedback = Feedback::new(&asked).to_string();
    match &asked.summary {
        SummaryStatus::FellBack(_) | SummaryStatus::NoRoom { .. } => reporter.warn(&feedback),
        _ => reporter.line(&feedback),
    }
    if let JobOutcome::Written(written) = ended
        && !written.failures.is_empty()
    {
        let (model, why) = (&written.model, ended.describe_failures());
        reporter.warn(&format!("{model} wrote the summary, because another model failed: {why}"));
    }
    if let Some(hint) = ended.hint() {
        reporter.line(text![paint(style::HINT, "hint:"), " ", hint]);
    }
    matches!(asked.summary, SummaryStatus::Placed(_))
}
