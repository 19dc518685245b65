//! What a provider takes of what is made here, found out by what it refuses.
//!
//! Rules differ: one wants roles to alternate, one takes no tool like ours. A body of ours that is refused, and not for its
//! length, is sent once more with roles that alternate, and then as it came: the client sees the first answer that is
//! none of these refusals, or what it would have seen without us. What was found out holds until the proxy ends.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use fanfold_store::SessionId;
use fanfold_wire::{Format, alternating};

use crate::call::{Call, NotSent};
use crate::converse::Came;
use crate::made::{Made, Reason, Sent};
use crate::meter::Passage;
use crate::opening::{LONGEST_ERROR, Opened};

/// So many are held; names come from clients.
const MOST_KEPT: usize = 1024;
/// What was refused in one session may be about that session; in so many it is about the provider.
const N_SESSIONS: usize = 2;

/// In which form bodies of ours are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Form {
    /// As they are made.
    #[default]
    Made,
    /// With roles that alternate.
    Alternating,
    /// Not at all.
    AsItCame,
}

impl Form {
    /// The form to try when this one was refused.
    fn next(self) -> Form {
        match self {
            Form::Made => Form::Alternating,
            Form::Alternating | Form::AsItCame => Form::AsItCame,
        }
    }

    /// A body in this form; none where it is the same as it was.
    fn apply(self, made: &Made, format: Format) -> Option<Made> {
        let body = made.body.as_ref()?;
        match self {
            Form::Made => None,
            Form::Alternating => {
                let body = alternating(std::str::from_utf8(body).ok()?, format)?;
                Some(Made { body: Some(Bytes::from(body)), ..made.clone() })
            }
            Form::AsItCame => {
                let left = Sent::AsItCame(Reason::NotTaken);
                Some(Made { body: None, left, has_tool: false, counted: None, ..made.clone() })
            }
        }
    }
}

/// Whether a body that is found too long may still be folded harder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    First,
    Last,
}

/// Who takes what: a model at an upstream, in a format.
type Who = (String, String, Format);

/// The forms that are known.
#[derive(Default)]
pub(crate) struct Taken {
    /// Guards the table; values are changed whole.
    known: Mutex<HashMap<Who, Known>>,
}

#[derive(Default)]
struct Known {
    wants_alternating: bool,
    /// Sessions of which nothing of ours was taken.
    refused: Vec<Option<SessionId>>,
}

impl Taken {
    fn known(&self) -> MutexGuard<'_, HashMap<Who, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The form in which a body of a session is taken, as far as that is known.
    fn of(&self, who: &Who, session: Option<&SessionId>) -> Form {
        let known = self.known();
        let Some(known) = known.get(who) else { return Form::Made };
        let is_refused = known.refused.len() >= N_SESSIONS
            || known.refused.iter().any(|refused| refused.as_ref() == session);
        match (is_refused, known.wants_alternating) {
            (true, _) => Form::AsItCame,
            (false, true) => Form::Alternating,
            (false, false) => Form::Made,
        }
    }

    /// Takes note that a form was taken where the one before it was refused. Says whether that is news of the provider.
    fn learn(&self, who: &Who, session: Option<&SessionId>, form: Form) -> bool {
        let mut known = self.known();
        if known.len() >= MOST_KEPT && !known.contains_key(who) {
            return false;
        }
        let known = known.entry(who.clone()).or_default();
        match form {
            Form::Made => false,
            Form::Alternating => !std::mem::replace(&mut known.wants_alternating, true),
            Form::AsItCame => {
                if known.refused.iter().all(|refused| refused.as_ref() != session) {
                    known.refused.push(session.cloned());
                }
                known.refused.len() == 1
            }
        }
    }
}

impl Call {
    /// Sends a body in the form that is taken, as far as that is known, and in the next one if it is refused.
    ///
    /// A refusal without a word, which may be for length, is only looked at here when folding harder did not help.
    pub(crate) async fn send_taken(
        &self,
        came: &Came,
        model: Option<&str>,
        made: Made,
        attempt: Try,
        passage: &mut Passage,
    ) -> Result<(Opened, Made), NotSent> {
        let taken = &self.shared.taken;
        let who = (self.upstream.address().to_owned(), model.unwrap_or_default().to_owned(), came.format);
        let session = made.session.clone();
        let mut form = taken.of(&who, session.as_ref());
        let mut made = form.apply(&made, came.format).unwrap_or(made);
        let mut opened = self.send_one(came, &made, passage).await?;
        let mut is_news = false;
        while made.body.is_some() && is_refused(&mut opened, attempt).await {
            // It was told to the meter, and is told once.
            (made.glance, made.steps) = (None, Vec::new());
            let next = std::iter::successors(Some(form.next()), |form| Some(form.next()));
            let Some((next, other)) =
                next.take(2).find_map(|next| Some((next, next.apply(&made, came.format)?)))
            else {
                break;
            };
            (form, made, is_news) = (next, other, true);
            // The refusal is not read any further: the connection is free for the next.
            drop(opened);
            passage.again();
            opened = self.send_one(came, &made, passage).await?;
        }
        let is_taken = opened.response.status().is_success();
        if is_news && is_taken && taken.learn(&who, session.as_ref(), form) {
            tell(&who, form);
        }
        Ok((opened, made))
    }
}

/// Whether a body was refused, and not for its length.
async fn is_refused(opened: &mut Opened, attempt: Try) -> bool {
    let is_about_length = match &opened.refusal {
        Some(refusal) => !(attempt == Try::Last && refusal.is_guess()),
        None => false,
    };
    match opened.response.status().as_u16() {
        400 | 422 => !is_about_length,
        // A failure is the provider's own, unless its template says what it failed at: llama.cpp answers so.
        500 => !is_about_length && is_of_a_template(opened).await,
        _ => false,
    }
}

/// Whether an error was raised by the template that makes a prompt of messages.
async fn is_of_a_template(opened: &mut Opened) -> bool {
    // Only what was read to its end already, so that nothing of it is lost here.
    let is_read = hyper::body::Body::size_hint(opened.response.body()).exact().is_some();
    if !is_read {
        return false;
    }
    let body = std::mem::take(opened.response.body_mut());
    let body = axum::body::to_bytes(body, LONGEST_ERROR).await.unwrap_or_default();
    let words = String::from_utf8_lossy(&body).to_lowercase();
    *opened.response.body_mut() = Body::from(body);
    words.contains("roles must alternate") || words.contains("jinja exception")
}

/// Tells people, once, what a provider does not take.
fn tell((upstream, model, _): &Who, form: Form) {
    match form {
        Form::Made => {}
        Form::Alternating => {
            tracing::info!(upstream, model, "it wants roles to alternate: notes go into the message before");
        }
        Form::AsItCame => tracing::warn!(
            upstream,
            model,
            "it refuses what fanfold makes and takes what came, so that is sent; `--recall off` leaves the tool out, if it is that"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_speaks_for_itself_and_two_for_the_provider() {
        let taken = Taken::default();
        let who = |model: &str| ("u".to_owned(), model.to_owned(), Format::Chat);
        let session = |name: &str| SessionId(name.to_owned());
        let of = |model: &str, name: &str| taken.of(&who(model), Some(&session(name)));
        assert!(taken.learn(&who("m"), Some(&session("a")), Form::Alternating));
        assert!(!taken.learn(&who("m"), Some(&session("b")), Form::Alternating), "it is known");
        assert_eq!((of("m", "c"), of("n", "c")), (Form::Alternating, Form::Made));
        assert!(taken.learn(&who("m"), Some(&session("a")), Form::AsItCame));
        assert_eq!((of("m", "a"), of("m", "c")), (Form::AsItCame, Form::Alternating));
        assert!(!taken.learn(&who("m"), Some(&session("b")), Form::AsItCame));
        assert_eq!((of("m", "c"), of("n", "a")), (Form::AsItCame, Form::Made));
    }
}
