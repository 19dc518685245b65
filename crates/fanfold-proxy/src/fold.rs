//! A body folded on a blocking thread, within a deadline. Whatever goes wrong, there is a body to send: the one that came.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanfold_core::Tokens;
use fanfold_engine::{Ask, Engine, Left, Terms, Trouble};
use fanfold_store::{NodeId, SessionId};
use fanfold_wire::{Conversation, Format};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use tokio::sync::Semaphore;

use crate::config::{Limits, Mode};
use crate::desk::Desk;

/// Who asks, as sessions have it.
const SOURCE: &str = "proxy";

/// Why a body went out as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// Nothing is changed in observe mode.
    Observed,
    /// It is packed in a way that is not known here.
    Packed,
    /// It is larger than what is looked at.
    TooLarge,
    /// It is no conversation.
    NotDecoded,
    /// The store did not take it.
    Store,
    /// Somebody else is folding the session.
    Locked,
    /// Nothing fits.
    Overflow,
    /// The view broke a promise.
    Fault,
    /// The provider holds the beginning.
    Continued,
    /// Our own work took too long.
    Deadline,
    /// Something of ours panicked.
    Panicked,
    /// The settings give no terms for the model.
    Terms,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 12] = [
        Reason::Observed,
        Reason::Packed,
        Reason::TooLarge,
        Reason::NotDecoded,
        Reason::Store,
        Reason::Locked,
        Reason::Overflow,
        Reason::Fault,
        Reason::Continued,
        Reason::Deadline,
        Reason::Panicked,
        Reason::Terms,
    ];

    /// Its name, as headers and counters have it.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Observed => "observed",
            Reason::Packed => "packed",
            Reason::TooLarge => "too_large",
            Reason::NotDecoded => "not_decoded",
            Reason::Store => "store",
            Reason::Locked => "locked",
            Reason::Overflow => "overflow",
            Reason::Fault => "fault",
            Reason::Continued => "continued",
            Reason::Deadline => "deadline",
            Reason::Panicked => "panicked",
            Reason::Terms => "terms",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A body that is to be folded.
#[derive(Clone)]
pub(crate) struct Wanted {
    /// The body, unpacked.
    pub(crate) body: Bytes,
    pub(crate) format: Format,
    /// The session that the client named.
    pub(crate) named: Option<String>,
}

/// What is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    /// The body to send; none if it is the one that came.
    pub(crate) body: Option<Bytes>,
    pub(crate) session: Option<SessionId>,
    pub(crate) left: Sent,
    /// What was said and what is sent, in tokens, where that is known.
    pub(crate) sizes: Option<(Tokens, Tokens)>,
    /// How long our own work took.
    pub(crate) took: Duration,
}

/// How a body leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// As it came, because it fits.
    Whole,
    /// Folded.
    Folded,
    /// As it came, for another reason.
    AsItCame(Reason),
}

impl Made {
    /// The body that came.
    pub(crate) fn as_it_came(reason: Reason) -> Made {
        Made { body: None, session: None, left: Sent::AsItCame(reason), sizes: None, took: Duration::ZERO }
    }
}

/// Folds bodies.
pub(crate) struct Folder {
    pub(crate) desk: Arc<Desk>,
    mode: Mode,
    deadline: Duration,
    /// How many are worked on at once. One that is late keeps its place until it is done.
    places: Arc<Semaphore>,
}

impl Folder {
    pub(crate) fn new(desk: Arc<Desk>, mode: Mode, limits: &Limits) -> Folder {
        let places = Arc::new(Semaphore::new(limits.folding));
        Folder { desk, mode, deadline: limits.deadline, places }
    }

    /// Folds a body, or says why it leaves as it came.
    pub(crate) async fn fold(&self, wanted: Wanted) -> Made {
        let begun = Instant::now();
        let mut made = match tokio::time::timeout(self.deadline, self.fold_on_a_thread(wanted)).await {
            Ok(made) => made,
            Err(_) => Made::as_it_came(Reason::Deadline),
        };
        made.took = begun.elapsed();
        if self.mode == Mode::Observe && made.body.take().is_some() {
            made.left = Sent::AsItCame(Reason::Observed);
        }
        made
    }

    async fn fold_on_a_thread(&self, wanted: Wanted) -> Made {
        let Ok(place) = Arc::clone(&self.places).acquire_owned().await else {
            return Made::as_it_came(Reason::Deadline);
        };
        let desk = Arc::clone(&self.desk);
        let work = tokio::task::spawn_blocking(move || {
            let made = fold(&desk, &wanted);
            drop(place);
            made
        });
        work.await.unwrap_or_else(|_| Made::as_it_came(Reason::Panicked))
    }
}

fn fold(desk: &Desk, wanted: &Wanted) -> Made {
    let Ok(body) = std::str::from_utf8(&wanted.body) else { return Made::as_it_came(Reason::NotDecoded) };
    let terms = match desk.host().terms(model(body).as_deref(), wanted.format) {
        Ok(terms) => terms,
        Err(why) => {
            tracing::warn!(why, "no terms");
            return Made::as_it_came(Reason::Terms);
        }
    };
    let engine = match desk.engine() {
        Ok(engine) => engine,
        Err(why) => {
            tracing::warn!(why, "the store could not be opened");
            return Made::as_it_came(Reason::Store);
        }
    };
    let Some(session) = session(&engine, wanted, body) else { return Made::as_it_came(Reason::NotDecoded) };
    ask(desk, &engine, session, body, &terms)
}

fn ask(desk: &Desk, engine: &Engine, session: SessionId, body: &str, terms: &Terms) -> Made {
    let answer = engine.request(&Ask { session: &session, body, terms, source: SOURCE, pins: &[] });
    let (left, folded) = match &answer.left {
        Left::Whole => (Sent::Whole, None),
        Left::Folded(_) => (Sent::Folded, Some(Bytes::from(answer.body))),
        Left::AsItCame(trouble) => (Sent::AsItCame(reason(trouble)), None),
    };
    match &answer.left {
        Left::AsItCame(Trouble::Store(error)) => desk.told(Some(error)),
        Left::AsItCame(_) => {}
        Left::Whole | Left::Folded(_) => desk.told(None),
    }
    if let Left::AsItCame(trouble) = &answer.left {
        tracing::warn!(%session, why = %trouble, "a body leaves as it came");
    }
    let sizes = engine.look(&session, |followed| {
        let said = followed.session.transcript().total();
        let sent = followed.session.ledger().total(followed.session.transcript());
        (said, sent)
    });
    Made { body: folded, session: Some(session), left, sizes, took: Duration::ZERO }
}

/// The session that a body belongs to: the one that is named, or the one that begins alike.
fn session(_engine: &Engine, wanted: &Wanted, body: &str) -> Option<SessionId> {
    if let Some(named) = &wanted.named {
        return Some(SessionId(named.clone()));
    }
    let (conversation, _) = Conversation::decode(body, Some(wanted.format)).ok()?;
    let first = conversation.messages().next()?;
    Some(SessionId(format!("proxy-{}", &NodeId::of(None, first).to_string()[..12])))
}

fn reason(trouble: &Trouble) -> Reason {
    match trouble {
        Trouble::NotDecoded(_) => Reason::NotDecoded,
        Trouble::Store(_) => Reason::Store,
        Trouble::Locked(_) => Reason::Locked,
        Trouble::Overflow(_) => Reason::Overflow,
        Trouble::Fault(_) => Reason::Fault,
        Trouble::Continued => Reason::Continued,
        Trouble::Panicked(_) => Reason::Panicked,
    }
}

/// The model that a body names. Most bodies begin with it, and are read no further.
pub(crate) fn model(body: &str) -> Option<String> {
    let mut found = None;
    // Finding it ends the reading as an error does.
    let _ = serde_json::Deserializer::from_str(body).deserialize_map(Seeker { found: &mut found });
    found
}

struct Seeker<'f> {
    found: &'f mut Option<String>,
}

impl<'de> Visitor<'de> for Seeker<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a request")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == "model" {
                *self.found = map.next_value().ok();
                return Err(serde::de::Error::custom("found"));
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found_wherever_it_stands() {
        let cases = [
            (r#"{"model":"a","messages":[not read any more"#, Some("a")),
            (r#"{"messages":[{"model":"b"}],"x":{"model":"c"},"model":"a\u0062"}"#, Some("ab")),
            (r#"{"messages":[]}"#, None),
            (r#"{"model":7}"#, None),
            (r#"["model"]"#, None),
            ("", None),
        ];
        for (body, expected) in cases {
            assert_eq!(model(body).as_deref(), expected, "{body}");
        }
    }
}
