//! Summaries written beside the turns: begun after a fold, a few at once, on threads of their own. No request waits for
//! one, and a proxy that ends leaves none half done.

use std::sync::Arc;

use fanfold_engine::{Ended, Engine, Progress, Wanted};
use fanfold_store::SessionId;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::meter::{Meter, Writer};
use crate::prepare::reconnecting_engine::Desk;

/// So many are written at once; a fold that finds no place is summarised with the next.
const AT_ONCE: usize = 4;

/// Has summaries written.
pub(crate) struct Errands {
    desk: Arc<Desk>,
    meter: Arc<Meter>,
    places: Arc<Semaphore>,
}

impl Errands {
    pub(crate) fn new(desk: Arc<Desk>, meter: Arc<Meter>) -> Errands {
        Errands { desk, meter, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Has a summary written of what a request has just folded, if it folded something and summaries are wanted.
    pub(crate) fn after(&self, engine: &Arc<Engine>, session: &SessionId, focus: &str) {
        if !self.desk.host().wants_summaries() || !engine.has_just_folded(session) {
            return;
        }
        let (Ok(place), Ok(runtime)) = (Arc::clone(&self.places).try_acquire_owned(), Handle::try_current())
        else {
            return;
        };
        let (desk, meter, engine) = (Arc::clone(&self.desk), Arc::clone(&self.meter), Arc::clone(engine));
        let (session, focus) = (session.clone(), focus.to_owned());
        runtime.spawn_blocking(move || {
            let wanted = Wanted { session: &session, focus: &focus, is_by_hand: false };
            let mut count_flaws = |progress: &Progress| {
                if let Progress::Flawed(flaws) = progress {
                    flaws.iter().for_each(|flaw| meter.summary_flawed(flaw.name()));
                }
            };
            let ended = engine.summarise(&wanted, &desk.host().ways(), &mut count_flaws);
            match ended {
                Ok(ended) => {
                    count(&meter, &session, &ended);
                    tell(&session, &ended);
                }
                Err(error) => tracing::warn!(%session, %error, "a summary could not be kept"),
            }
            drop(place);
        });
    }
}

/// Counts what came of it: who wrote it, and who stood in for whom.
fn count(meter: &Meter, session: &SessionId, ended: &Ended) {
    let (missed, last) = match ended {
        Ended::Written(written) => {
            let by = if written.at == 0 { Writer::Summary } else { Writer::Main };
            meter.summary_written(session, by, written.tokens);
            (&written.missed, by)
        }
        Ended::Digest(missed) | Ended::Aborted(missed) => (missed, Writer::Digest),
        Ended::Nothing | Ended::NotSet | Ended::Resting { .. } | Ended::Busy(_) | Ended::Overtaken => return,
    };
    for (i, missed) in missed.iter().enumerate() {
        // There are two at most: who stood in for the first is the second, if there was one.
        meter.summary_fell_back(
            missed.name(),
            if i == 0 && missed_again(ended) { Writer::Main } else { last },
        );
    }
}

/// Whether the model that stood in failed, too.
fn missed_again(ended: &Ended) -> bool {
    matches!(ended, Ended::Digest(missed) | Ended::Aborted(missed) if missed.len() > 1)
}

/// Tells what came of it. What models and providers say was redacted; the summary itself is not told.
fn tell(session: &SessionId, ended: &Ended) {
    match ended {
        Ended::Written(written) => {
            let (model, tokens) = (&written.model, written.tokens.0);
            if let Some(missed) = written.missed.first() {
                tracing::warn!(%session, why = %missed, hint = missed.hint(), "another model wrote the summary");
            }
            tracing::info!(%session, model, tokens, "a summary was written");
        }
        Ended::Digest(_) | Ended::Aborted(_) => {
            let hint = ended.hint().unwrap_or_default();
            tracing::warn!(%session, why = %ended, hint, "no summary was written");
        }
        Ended::Nothing | Ended::NotSet | Ended::Resting { .. } | Ended::Busy(_) | Ended::Overtaken => {
            tracing::debug!(%session, why = %ended, "no summary was written");
        }
    }
}
