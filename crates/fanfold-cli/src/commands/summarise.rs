//! `fold --summarise`: a fold by hand, with a summary by a model.

use fanfold_core::summary::Flaw;
use fanfold_core::{Asked, Event, Feedback, Written as Came};
use fanfold_engine::{
    Clock as _, Ended, Engine, Followed, MachineClock, Pending, Progress, Wanted, Ways, summarise_alone,
};
use fanfold_store::SessionId;

use super::Say;
use crate::failure::Failure;
use crate::settings::Options;
use crate::terminal::{paint, style};
use crate::{store, summaries};

/// What came of a summary that was asked for.
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    /// What was wrong with answers, those with it that were asked for again.
    pub(crate) flaws: Vec<Flaw>,
    /// Whether it stands in the view.
    pub(crate) is_placed: bool,
}

/// Has a summary written of a conversation that is not kept, and folds what is old.
pub(super) fn alone(followed: &mut Followed, options: &Options, say: Say) -> anyhow::Result<Outcome> {
    let ways = summaries::ways(options)?;
    let sizes = Sizes::of(followed);
    let focus = options.focus.as_deref().unwrap_or_default();
    let mut flaws = Vec::new();
    let (summary, ended) =
        summarise_alone(&*followed.session, focus, &ways, MachineClock.now(), &mut |progress| {
            hear(progress, &mut flaws, say);
        });
    go_on_unless(&ended)?;
    if let Some(summary) = summary {
        followed.session.apply(Event::Summarised(summary));
    }
    if !matches!(ended, Ended::Nothing) {
        followed.session.apply(Event::FoldAsked { range: None });
    }
    let is_placed = sizes.tell(followed, &ended, say);
    Ok(Outcome { ended, flaws, is_placed })
}

/// A summary of a session, asked for before anything is kept or folded.
pub(super) struct First {
    ways: Ways,
    focus: String,
    ended: Ended,
    flaws: Vec<Flaw>,
    pending: Option<Pending>,
}

/// Has a summary written of what a session is to hold. Where that fails, nothing was changed.
pub(super) fn first(
    engine: &Engine,
    session: &SessionId,
    followed: &Followed,
    options: &Options,
    say: Say,
) -> anyhow::Result<First> {
    let ways = summaries::ways(options)?;
    let focus = options.focus.clone().unwrap_or_default();
    let wanted = Wanted { session, focus: &focus, is_by_hand: true };
    let mut flaws = Vec::new();
    let asked =
        engine.summarise_first(&wanted, followed, &ways, &mut |progress| hear(progress, &mut flaws, say));
    let (ended, pending) = asked.map_err(|error| store::failed(&error))?;
    go_on_unless(&ended)?;
    Ok(First { ways, focus, ended, flaws, pending })
}

impl First {
    /// Keeps it, now that the session is kept. It stands in the next view, which is folded by hand.
    pub(super) fn keep(&self, engine: &Engine, session: &SessionId) -> anyhow::Result<(Ended, Sizes)> {
        let sizes = engine.look(session, Sizes::of).unwrap_or_default();
        let Some(pending) = &self.pending else { return Ok((self.ended.clone(), sizes)) };
        let wanted = Wanted { session, focus: &self.focus, is_by_hand: true };
        let ended = engine.keep_summary(&wanted, &self.ways, pending);
        let ended = ended.map_err(|error| store::failed(&error))?;
        go_on_unless(&ended)?;
        Ok((ended, sizes))
    }

    /// What came of it, now that it stands in the view or does not.
    pub(super) fn outcome(self, ended: Ended, is_placed: bool) -> Outcome {
        Outcome { ended, flaws: self.flaws, is_placed }
    }
}

/// Whether something is in the way of the fold that was asked for.
fn go_on_unless(ended: &Ended) -> Result<(), Failure> {
    let is_in_the_way = match ended {
        Ended::NotSet | Ended::Aborted(_) | Ended::Busy(_) | Ended::Overtaken | Ended::Resting { .. } => true,
        Ended::Written(_) | Ended::Nothing | Ended::Digest(_) => false,
    };
    if !is_in_the_way {
        return Ok(());
    }
    let hint = ended.hint().unwrap_or_else(|| "try again when that is done".to_owned());
    Err(Failure::new(ended.to_string(), hint))
}

/// Tells how it goes. What is wrong with an answer is for the end.
fn hear(progress: &Progress, flaws: &mut Vec<Flaw>, say: Say) {
    let line = match progress {
        Progress::Asking { model, number: 1 } => format!("asking {model} for a summary"),
        Progress::Asking { model, number } => format!("asking {model}, question {number}"),
        Progress::Flawed(found) => {
            flaws.extend(found.iter().cloned());
            return;
        }
        Progress::Missed(missed) => format!("{missed}"),
    };
    say.note(&format!("{} {line}\n", paint(style::DIM, "summary:")));
}

/// What a conversation cost before it was folded by hand.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    before: fanfold_core::Tokens,
    n_folds: usize,
}

impl Sizes {
    fn of(followed: &mut Followed) -> Sizes {
        let _ = followed.view();
        let ledger = followed.session.ledger();
        Sizes { before: followed.session.status().tokens, n_folds: ledger.receipts().len() }
    }

    /// Tells what came of it. Says whether a summary that was written stands in the view.
    pub(super) fn tell(&self, followed: &mut Followed, ended: &Ended, say: Say) -> bool {
        let now = Sizes::of(followed);
        let ledger = followed.session.ledger();
        let n_summaries = ledger.summaries().count();
        let standing = ledger.summary_in_view().map(|placed| placed.number + 1);
        let room = followed.session.budget().room();
        let summary = match ended {
            Ended::Written(written) if standing == Some(n_summaries) => Came::Yes(written.tokens),
            // One that came into a full view would have to leave it at once, so a little stays free.
            Ended::Written(written) => {
                Came::NoRoom { tokens: written.tokens, free: room.permille(950) - now.before }
            }
            Ended::Digest(_) => Came::Instead(ended.why()),
            _ => Came::NotAsked,
        };
        let why_nothing = matches!(ended, Ended::Nothing).then(|| ended.to_string());
        let asked = Asked {
            before: self.before,
            after: now.before,
            room,
            n_folds: now.n_folds - self.n_folds.min(now.n_folds),
            why_nothing,
            summary,
            has_earlier: standing.is_some(),
        };
        let feedback = Feedback::of(&asked);
        match &asked.summary {
            Came::Instead(_) | Came::NoRoom { .. } => say.warn(&feedback.to_string()),
            _ => say.note(&format!("{feedback}\n")),
        }
        if let Ended::Written(written) = ended
            && !written.missed.is_empty()
        {
            say.warn(&format!(
                "{} wrote the summary, because another model did not: {}",
                written.model,
                ended.why()
            ));
        }
        if let Some(hint) = ended.hint() {
            say.note(&format!("{} {hint}\n", paint(style::HINT, "hint:")));
        }
        matches!(asked.summary, Came::Yes(_))
    }
}
