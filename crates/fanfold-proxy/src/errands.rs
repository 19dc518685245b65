//! Summaries written beside the turns: begun after a fold, a few at once, on threads of their own. No request waits for
//! one, and a proxy that ends leaves none half done.

use std::sync::Arc;

use fanfold_engine::{Ended, Engine, Wanted};
use fanfold_store::SessionId;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::desk::Desk;

/// So many are written at once; a fold that finds no place is summarised with the next.
const AT_ONCE: usize = 4;

/// Has summaries written.
pub(crate) struct Errands {
    desk: Arc<Desk>,
    places: Arc<Semaphore>,
}

impl Errands {
    pub(crate) fn new(desk: Arc<Desk>) -> Errands {
        Errands { desk, places: Arc::new(Semaphore::new(AT_ONCE)) }
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
        let (desk, engine, session, focus) =
            (Arc::clone(&self.desk), Arc::clone(engine), session.clone(), focus.to_owned());
        runtime.spawn_blocking(move || {
            let wanted = Wanted { session: &session, focus: &focus, is_by_hand: false };
            let ended = engine.summarise(&wanted, &desk.host().ways(), &mut |_| {});
            match ended {
                Ok(ended) => tell(&session, &ended),
                Err(error) => tracing::warn!(%session, %error, "a summary could not be kept"),
            }
            drop(place);
        });
    }
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
