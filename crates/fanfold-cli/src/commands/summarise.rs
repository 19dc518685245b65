//! `fold --summarise`: a fold by hand, with a summary by a model.

use fanfold_core::{Asked, Event, Feedback, Written as Came};
use fanfold_engine::{Clock as _, Ended, Engine, Followed, MachineClock, Progress, Wanted, summarise_alone};
use fanfold_store::SessionId;

use super::Say;
use crate::failure::Failure;
use crate::settings::Options;
use crate::terminal::{paint, style};
use crate::{store, summaries};

/// Has a summary written of a conversation that is not kept, and folds what is old.
pub(super) fn alone(followed: &mut Followed, options: &Options, say: Say) -> anyhow::Result<()> {
    let ways = summaries::ways(options)?;
    let sizes = Sizes::of(followed);
    let focus = options.focus.as_deref().unwrap_or_default();
    let (summary, ended) =
        summarise_alone(&followed.session, focus, &ways, MachineClock.now(), &mut |progress| {
            tell(progress, say);
        });
    go_on_unless(&ended)?;
    if let Some(summary) = summary {
        followed.session.on(Event::Summarised(summary));
    }
    if !matches!(ended, Ended::Nothing) {
        followed.session.on(Event::FoldAsked { range: None });
    }
    sizes.tell(followed, &ended, say);
    Ok(())
}

/// Has a summary written of a session that was just folded. It stands in the next view, which is folded by hand.
pub(super) fn kept(
    engine: &Engine,
    session: &SessionId,
    options: &Options,
    say: Say,
) -> anyhow::Result<(Ended, Sizes)> {
    let ways = summaries::ways(options)?;
    let sizes = engine.look(session, Sizes::of).unwrap_or_default();
    let focus = options.focus.as_deref().unwrap_or_default();
    let wanted = Wanted { session, focus, is_by_hand: true };
    let ended = engine.summarise(&wanted, &ways, &mut |progress| tell(progress, say));
    let ended = ended.map_err(|error| store::failed(&error))?;
    go_on_unless(&ended)?;
    Ok((ended, sizes))
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

fn tell(progress: &Progress, say: Say) {
    let line = match progress {
        Progress::Asking { model, number: 1 } => format!("asking {model} for a summary"),
        Progress::Asking { model, number } => format!("asking {model}, question {number}"),
        Progress::Flawed(_) => return,
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
        Sizes { before: ledger.total(followed.session.transcript()), n_folds: ledger.receipts().len() }
    }

    /// Tells what came of it.
    pub(super) fn tell(&self, followed: &mut Followed, ended: &Ended, say: Say) {
        let now = Sizes::of(followed);
        let summary = match ended {
            Ended::Written(written) => Came::Yes(written.tokens),
            Ended::Digest(_) => Came::Instead(ended.to_string()),
            _ => Came::NotAsked,
        };
        let why_nothing = matches!(ended, Ended::Nothing).then(|| ended.to_string());
        let asked = Asked {
            before: self.before,
            after: now.before,
            room: followed.session.budget().room(),
            n_folds: now.n_folds - self.n_folds.min(now.n_folds),
            why_nothing,
            summary,
        };
        let feedback = Feedback::of(&asked);
        match ended {
            Ended::Digest(_) => {
                say.warn(&feedback.to_string());
                let hint = ended.hint().unwrap_or_default();
                say.note(&format!("{} {hint}\n", paint(style::HINT, "hint:")));
            }
            _ => say.note(&format!("{feedback}\n")),
        }
    }
}
