//! What a provider takes of what is made here, found out by what it refuses.
//!
//! Rules differ: one wants roles to alternate, one takes no tool like ours. A body of ours that is refused, and not for its
//! length, is sent once more with roles that alternate, without the tool, and then as it came: the client sees the first
//! answer that is none of these refusals, or what it would have seen without us. What was found out holds until the proxy
//! ends; a session whose tool was left out never has it again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use bytes::Bytes;
use fanfold_store::SessionId;
use fanfold_wire::reply::remove_recall_tool;
use fanfold_wire::{Format, alternate_roles};

use crate::meter::Passage;
use crate::prepare::prepared_body::{Made, Reason, Sent};
use crate::prepare::recall_offer::NO_WAY;
use crate::send::call::{Call, NotSent};
use crate::send::conversation::Came;
use crate::send::response_start::{LONGEST_ERROR, Opened};

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
    /// Without the tool that opens folds.
    WithoutTool,
    /// Without it, and with roles that alternate.
    Bare,
    /// Not at all.
    AsItCame,
}

impl Form {
    /// The forms to try when this one was refused, in their order.
    fn next(self) -> impl Iterator<Item = Form> {
        let all = [Form::Alternating, Form::WithoutTool, Form::Bare, Form::AsItCame];
        all.into_iter().filter(move |form| *form > self)
    }

    /// A body in this form; none where it is the same as it was.
    fn apply(self, made: &Made, came: &Came) -> Option<Made> {
        let body = made.body.as_ref()?;
        if self == Form::AsItCame {
            let left = Sent::AsItCame(Reason::NotTaken);
            return Some(Made { body: None, left, has_tool: false, counted: None, ..made.clone() });
        }
        let text = std::str::from_utf8(body).ok()?;
        let is_left_out = made.has_tool && matches!(self, Form::WithoutTool | Form::Bare);
        let bare = if is_left_out { Some(remove_recall_tool(text, came.format)?) } else { None };
        let alternates = match self {
            Form::Alternating | Form::Bare => alternate_roles(bare.as_deref().unwrap_or(text), came.format),
            Form::Made | Form::WithoutTool | Form::AsItCame => None,
        };
        let body = Bytes::from(alternates.or(bare)?);
        // Nothing else may have been changed; then it is the client's own.
        let body = Some(body).filter(|body| *body != came.body);
        Some(Made { body, has_tool: made.has_tool && !is_left_out, ..made.clone() })
    }
}

/// Whether a body that is found too long may still be folded harder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Try {
    First,
    Last,
}

/// Who takes what: a model at an upstream, in a format.
pub(crate) type Who = (String, String, Format);

/// The forms that are known.
#[derive(Default)]
pub(crate) struct Taken {
    /// Guards the table; values are changed whole.
    known: Mutex<HashMap<Who, Known>>,
}

#[derive(Default)]
struct Known {
    wants_alternating: bool,
    /// Sessions whose tool was not taken.
    toolless: Vec<Option<SessionId>>,
    /// Sessions of which nothing of ours was taken.
    refused: Vec<Option<SessionId>>,
}

impl Known {
    fn takes_tool(&self) -> bool {
        self.toolless.len() < N_SESSIONS
    }
}

impl Taken {
    fn known(&self) -> MutexGuard<'_, HashMap<Who, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session that begins may be offered the tool, as far as that is known.
    pub(crate) fn takes_tool(&self, who: &Who) -> bool {
        self.known().get(who).is_none_or(Known::takes_tool)
    }

    /// The form in which a body of a session is taken, as far as that is known.
    fn of(&self, who: &Who, session: Option<&SessionId>) -> Form {
        let known = self.known();
        let Some(known) = known.get(who) else { return Form::Made };
        let is_among =
            |sessions: &[Option<SessionId>]| sessions.iter().any(|known| known.as_ref() == session);
        let is_refused = known.refused.len() >= N_SESSIONS || is_among(&known.refused);
        let is_toolless = !known.takes_tool() || is_among(&known.toolless);
        match (is_refused, known.wants_alternating, is_toolless) {
            (true, _, _) => Form::AsItCame,
            (false, true, true) => Form::Bare,
            (false, true, false) => Form::Alternating,
            (false, false, true) => Form::WithoutTool,
            (false, false, false) => Form::Made,
        }
    }

    /// Takes note that a form was taken where the one before it was refused. Says whether that is news of the provider.
    fn learn(&self, who: &Who, session: Option<&SessionId>, form: Form) -> bool {
        let mut known = self.known();
        if known.len() >= MOST_KEPT && !known.contains_key(who) {
            return false;
        }
        let known = known.entry(who.clone()).or_default();
        let mut is_news = false;
        if matches!(form, Form::Alternating | Form::Bare) {
            is_news |= !std::mem::replace(&mut known.wants_alternating, true);
        }
        let sessions = match form {
            Form::WithoutTool | Form::Bare => &mut known.toolless,
            Form::AsItCame => &mut known.refused,
            Form::Made | Form::Alternating => return is_news,
        };
        // More than speak for the provider are not needed.
        let is_new = sessions.iter().all(|known| known.as_ref() != session);
        if is_new && sessions.len() < N_SESSIONS {
            sessions.push(session.cloned());
            is_news |= sessions.len() == 1;
        }
        is_news
    }
}

impl Call {
    /// Whom a request for a model asks.
    pub(crate) fn who(&self, model: Option<&str>, format: Format) -> Who {
        (self.upstream.address().to_owned(), model.unwrap_or_default().to_owned(), format)
    }

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
        let (who, session) = (self.who(model, came.format), made.session.clone());
        let mut form = taken.of(&who, session.as_ref());
        let mut forms = form.next();
        let mut sent = form.apply(&made, came).unwrap_or_else(|| made.clone());
        let mut opened = self.send_one(came, &sent, passage).await?;
        let mut is_news = false;
        while sent.body.is_some() && is_refused(&mut opened, attempt).await {
            let other = forms.find_map(|form| Some((form, form.apply(&made, came)?)));
            let Some((next, other)) = other else { break };
            // Where there is nothing to alternate, two of them are the same.
            if other.body == sent.body {
                continue;
            }
            // It was told to the meter, and is told once.
            (form, is_news) = (next, true);
            sent = Made { glance: None, steps: Vec::new(), ..other };
            // The refusal is not read any further: the connection is free for the next.
            drop(opened);
            passage.again();
            opened = self.send_one(came, &sent, passage).await?;
        }
        let is_taken = opened.response.status().is_success();
        if is_news && is_taken && taken.learn(&who, session.as_ref(), form) {
            tell(&who, form);
        }
        let is_left_out = made.has_tool && !sent.has_tool && form != Form::AsItCame;
        if let Some(session) = session.filter(|_| is_left_out && is_taken) {
            self.withdraw(session).await;
        }
        Ok((opened, sent))
    }

    /// Takes the tool back from a session whose provider does not take it: what is folded from now on names no way.
    async fn withdraw(&self, session: SessionId) {
        let desk = Arc::clone(&self.shared.folder.desk);
        let work = self.shared.tasks.spawn_blocking(move || {
            let Ok(engine) = desk.engine() else { return };
            if let Err(error) = engine.withdraw(&session, NO_WAY) {
                tracing::debug!(%session, %error, "a tool could not be taken back");
            }
        });
        let _ = tokio::time::timeout(self.shared.limits.deadline, work).await;
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
        Form::WithoutTool | Form::Bare => {
            tracing::warn!(upstream, model, "it does not take the tool that opens folds: it is left out");
        }
        Form::AsItCame => {
            tracing::warn!(
                upstream,
                model,
                "it refuses what fanfold makes and takes what came: that is sent"
            );
        }
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

    #[test]
    fn a_tool_that_two_sessions_could_not_have_is_offered_to_nobody() {
        let taken = Taken::default();
        let who = |model: &str| ("u".to_owned(), model.to_owned(), Format::Chat);
        let session = |name: &str| SessionId(name.to_owned());
        let of = |name: &str| taken.of(&who("m"), Some(&session(name)));
        assert!(taken.learn(&who("m"), Some(&session("a")), Form::WithoutTool));
        assert!(!taken.learn(&who("m"), Some(&session("a")), Form::WithoutTool), "it is known");
        assert_eq!((of("a"), of("b")), (Form::WithoutTool, Form::Made));
        assert!(taken.takes_tool(&who("m")));
        assert!(taken.learn(&who("m"), Some(&session("b")), Form::Bare), "roles are news");
        assert_eq!((of("a"), of("c")), (Form::Bare, Form::Bare));
        assert!(!taken.takes_tool(&who("m")) && taken.takes_tool(&who("n")));
    }
}
