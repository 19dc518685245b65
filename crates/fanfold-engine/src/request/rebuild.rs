//! A request made again, byte for byte, from what was noted of it.

use fanfold_core::{Budget, Tokens};
use fanfold_store::{BlobId, NodeId, SessionId, StoreError};

use crate::engine::{Engine, OpError};
use crate::follow::pipeline::Followed;
use crate::follow::terms::Terms;
use crate::log::body_frame::Skeleton;
use crate::log::message_styles::Dresses;
use crate::log::notes::{Note, Noted, Sent};
use crate::log::session_log::Past;
use crate::recall::handles::{Body, body_of};
use crate::sessions::state::{DecodedBody, State, decode_as, read_frame};

/// Makes terms again of their description and a budget.
pub type TermsOf<'a> = dyn Fn(&str, Budget) -> Result<Terms, String> + 'a;

/// A request made again.
pub struct Rebuilt {
    /// Its bytes.
    pub body: String,
    /// What was noted of it.
    pub sent: Sent,
    /// Whether the bytes have the hash that was noted.
    pub is_same: bool,
    /// The conversation as it stood then; none where it left as it came.
    pub followed: Option<Followed>,
}

impl Engine {
    /// The requests of a session, oldest first.
    pub fn requests(&self, session: &SessionId) -> Result<Vec<Noted>, StoreError> {
        let past = Past::read(&*self.store, session)?;
        let own = past.notes.into_iter().skip(past.own_from);
        Ok(own.filter(|noted| matches!(noted.note, Note::Request(_))).collect())
    }

    /// Makes a request of a session again, by its number from 1.
    pub fn rebuild(
        &self,
        session: &SessionId,
        number: usize,
        terms_of: &TermsOf<'_>,
    ) -> Result<Rebuilt, OpError> {
        let requests = self.requests(session)?;
        let noted = number.checked_sub(1).and_then(|i| requests.into_iter().nth(i));
        let Some(Noted { tip, note: Note::Request(sent), .. }) = noted else {
            let n = self.requests(session)?.len();
            return Err(OpError::wrong(
                format!("session {session} has no request {number}"),
                format!("its requests are counted from 1 to {n}"),
            ));
        };
        let frame = read_frame(&*self.store, &sent.frame)?;
        let body = body_of(&*self.store, tip, sent.from, &frame, &sent.dress)?;
        let (body, followed) = match &sent.original {
            Some(_) => (body.text, None),
            None => self.again(session, &sent, &frame, body, terms_of)?,
        };
        let is_same = blake3::hash(body.as_bytes()).to_string() == sent.hash;
        Ok(Rebuilt { body, sent, is_same, followed })
    }

    /// Whether a session has a view of its own: something whole was sent, and its terms still hold.
    pub fn has_view(&self, session: &SessionId) -> Result<bool, StoreError> {
        let past = Past::read(&*self.store, session)?;
        let is_whole = |noted: &Noted| matches!(&noted.note, Note::Request(sent) if sent.from == 0);
        Ok(past.era(past.notes.len()).is_some() && past.notes.iter().any(is_whole))
    }

    /// The newest view of a session, from the store alone.
    pub fn reopen(&self, session: &SessionId, terms_of: &TermsOf<'_>) -> Result<Followed, OpError> {
        let past = Past::read(&*self.store, session)?;
        let is_whole = |noted: &&Noted| matches!(&noted.note, Note::Request(sent) if sent.from == 0);
        let last = past.notes.iter().rev().find(is_whole).map(|noted| noted.note.clone());
        let has_terms = past.era(past.notes.len()).is_some();
        let Some(Note::Request(sent)) = last.filter(|_| has_terms) else {
            return Err(OpError::wrong(
                format!("nothing of session {session} was sent by terms that hold"),
                format!("fold it first: fanfold fold --session {session}"),
            ));
        };
        let row = self.row(session)?;
        let frame = read_frame(&*self.store, &sent.frame)?;
        let body = body_of(&*self.store, row.tip, 0, &frame, &sent.dress_at(row.tip))?;
        let until = past.notes.len();
        Ok(self.follow_again(past, until, &sent, &frame, body, terms_of)?.followed)
    }

    /// The body that a session stands for, as its client would send it now; a bare list where none ever came.
    pub fn body(&self, session: &SessionId) -> Result<String, OpError> {
        let past = Past::read(&*self.store, session)?;
        let tip = self.row(session)?.tip;
        let found = past.notes.iter().rev().find_map(|noted| match &noted.note {
            Note::Request(sent) if sent.from == 0 => Some((Some(sent.frame.clone()), sent.dress_at(tip))),
            Note::Came { frame, dress, .. } if noted.tip == tip => Some((Some(frame.clone()), dress.clone())),
            Note::Began(began) => Some((Some(began.frame.clone()), Dresses::default())),
            Note::Imported { frame, dress, .. } => Some((frame.clone(), dress.clone())),
            _ => None,
        });
        let (frame, dress) = found.unwrap_or_default();
        let frame = match frame {
            Some(frame) => read_frame(&*self.store, &frame)?,
            None => Skeleton::of_list(),
        };
        Ok(body_of(&*self.store, tip, 0, &frame, &dress)?.text)
    }

    fn again(
        &self,
        session: &SessionId,
        sent: &Sent,
        frame: &Skeleton,
        body: Body,
        terms_of: &TermsOf<'_>,
    ) -> Result<(String, Option<Followed>), OpError> {
        let past = Past::read(&*self.store, session)?;
        let until = past.n_before(sent.seen);
        let mut state = self.follow_again(past, until, sent, frame, body, terms_of)?;
        let tools = state.followed.conversation.tools().map(str::to_owned);
        state.followed.set_tools(tools.as_deref());
        let view = state.followed.view().map_err(|refusal| {
            OpError::wrong(
                format!("this fanfold makes no view of it: {refusal}"),
                "its settings or its fanfold were others then",
            )
        })?;
        let encoded = state.followed.encode(&view);
        let body = sent.edits.apply(encoded, state.followed.conversation.format());
        Ok((body, Some(state.followed)))
    }

    fn follow_again(
        &self,
        past: Past,
        until: usize,
        sent: &Sent,
        frame: &Skeleton,
        body: Body,
        terms_of: &TermsOf<'_>,
    ) -> Result<State, OpError> {
        let broken = |what: String| OpError::Store(StoreError::Corrupt(what));
        let era = past.era(until).map(|era| past.notes[era].note.clone());
        let Some(Note::Began(began)) = era else {
            return Err(broken("the terms of a request are not noted".to_owned()));
        };
        let id: BlobId = began.terms.parse().map_err(|error| broken(format!("{error}")))?;
        let described = self.store.blob(id)?.unwrap_or_default();
        let budget = Budget::with_reserve(Tokens(began.window), Tokens(began.reserve));
        let terms = terms_of(&String::from_utf8_lossy(&described), budget).map_err(|why| {
            OpError::wrong(
                format!("the settings of the request can't be made again: {why}"),
                "a file that they name may be gone",
            )
        })?;
        let (conversation, changes) =
            decode_as(&body.text, &sent.format, frame).map_err(|error| broken(error.to_string()))?;
        let body = DecodedBody::new(conversation, changes, body.ids);
        Ok(State::replay(&*self.store, body, &terms, &past, until)?)
    }
}

impl Sent {
    /// How the messages up to a tip are dressed: as they were sent last, where these are the ones.
    fn dress_at(&self, tip: Option<NodeId>) -> Dresses {
        let is_same = self.tip == tip.map(|tip| tip.to_string());
        if is_same { self.dress.clone() } else { self.dress.clone().without_marks() }
    }
}
