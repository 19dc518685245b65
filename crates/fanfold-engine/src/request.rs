//! One request from start to end: the originals are kept, the folds are kept, then the view leaves.
//!
//! ```text
//! bytes --decode--> messages --commit--> store      the originals are safe before anything stands for them
//!                      |
//!             go on, or replay what happened        the same bytes either way
//!                      |
//!                    view --commit--> store         new folds, and the request itself, before it leaves
//! ```
//!
//! A body that begins with what the session has adds the rest. One that differs moves the session back to where they
//! part and goes on from there: what was left behind stays in the store, the move is noted, and a redo finds it.
//! If anything of ours fails, the body leaves as it came and says why.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fanfold_core::{Fault, Overflow, Refusal, Tokens, View};
use fanfold_store::{Batch, BlobId, Op, SessionId, StoreError};
use fanfold_wire::DecodeError;

use crate::engine::{Engine, store_hint, store_words};
use crate::fold::record;
use crate::keep::Kept;
use crate::lock::{FoldLock, Got};
use crate::note::{Note, Sent};
use crate::past::Past;
use crate::state::{Arrived, State};
use crate::terms::Terms;

/// What a client wants to send.
pub struct Ask<'a> {
    /// The session; it is made if it is not there.
    pub session: &'a SessionId,
    /// The body as it came.
    pub body: &'a str,
    /// What it is folded by.
    pub terms: &'a Terms,
    /// Who asks: `cli`, `proxy`.
    pub source: &'a str,
    /// Messages that must not be folded from now on, by their numbers from 0.
    pub pins: &'a [u32],
}

/// What to send.
#[derive(Debug)]
pub struct Answer {
    /// The body to send.
    pub body: String,
    /// How it leaves.
    pub left: Left,
    /// Whether all that was said is in the store.
    pub is_kept: bool,
    /// How many messages the session did not have before.
    pub n_new: usize,
}

/// How a body leaves.
#[derive(Debug)]
pub enum Left {
    /// As it came, because it fits.
    Whole,
    /// Folded: what the view costs.
    Folded(Tokens),
    /// As it came, because something did not work.
    AsItCame(Trouble),
}

/// Why a body left as it came.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It is no conversation.
    #[error("it is not understood: {0}")]
    NotDecoded(#[from] DecodeError),
    /// The store did not take it.
    #[error("{}", store_words(.0))]
    Store(#[from] StoreError),
    /// Somebody else is folding the session.
    #[error("{0} is folding this session and does not come to an end")]
    Locked(String),
    /// Nothing fits.
    #[error("{0}")]
    Overflow(Box<Overflow>),
    /// The view broke a promise.
    #[error("the view broke a promise and was not used: {0}")]
    Fault(Fault),
    /// The provider holds the beginning, so there is nothing to fold.
    #[error("the provider holds the beginning of the conversation")]
    Continued,
    /// Something of ours panicked.
    #[error("fanfold failed: {0}")]
    Panicked(String),
}

impl Trouble {
    /// What to do about it.
    pub fn hint(&self) -> String {
        match self {
            Trouble::NotDecoded(error) => error.hint().to_owned(),
            Trouble::Store(error) => store_hint(error),
            Trouble::Locked(_) => "it ends by itself after half a minute; then try again".to_owned(),
            Trouble::Overflow(overflow) => overflow.remedy.clone(),
            Trouble::Fault(_) | Trouble::Panicked(_) => {
                "this is a bug of fanfold's; please report it".to_owned()
            }
            Trouble::Continued => "leave `previous_response_id` out to have it folded".to_owned(),
        }
    }
}

impl Engine {
    /// Takes what a client wants to send, and gives what is to be sent.
    pub fn request(&self, ask: &Ask<'_>) -> Answer {
        let mut progress = Progress::default();
        let tried = catch_unwind(AssertUnwindSafe(|| self.try_request(ask, &mut progress)));
        let (body, left) = match tried {
            Ok(Ok((body, left))) => (body, left),
            Ok(Err(trouble)) => (ask.body.to_owned(), Left::AsItCame(trouble)),
            Err(panic) => (ask.body.to_owned(), Left::AsItCame(Trouble::Panicked(words_of(&*panic)))),
        };
        Answer { body, left, is_kept: progress.is_kept, n_new: progress.n_new }
    }

    fn try_request(&self, ask: &Ask<'_>, progress: &mut Progress) -> Result<(String, Left), Trouble> {
        let kept = match self.keep(ask) {
            Err(Trouble::Continued) => {
                progress.is_kept = true;
                return Err(Trouble::Continued);
            }
            kept => kept?,
        };
        (progress.is_kept, progress.n_new) = (true, kept.n_new);
        let Kept { arrived, held, past, frame, .. } = kept;
        let mut state = match held {
            Some(mut state) => {
                state.followed.conversation = arrived.conversation;
                state.go_on(&*self.store, arrived.changes, arrived.ids)?;
                *state
            }
            None => self.replay(ask.terms, arrived, past)?,
        };
        let tools = state.followed.conversation.tools().map(str::to_owned);
        state.followed.set_tools(tools.as_deref());
        let view = match state.followed.view() {
            Ok(view) => view,
            Err(Refusal::Overflow(overflow)) => return Err(Trouble::Overflow(Box::new(overflow))),
            Err(Refusal::Fault(fault)) => return Err(Trouble::Fault(fault)),
        };
        let is_whole = view.is_untouched();
        let body = if is_whole { ask.body.to_owned() } else { state.followed.encode(&view) };
        self.note_request(ask, &mut state, frame, &view, &body)?;
        self.cache.put(ask.session.clone(), state);
        Ok((body, if is_whole { Left::Whole } else { Left::Folded(view.tokens) }))
    }

    /// Notes new folds and the request, at once, before the view leaves.
    fn note_request(
        &self,
        ask: &Ask<'_>,
        state: &mut State,
        frame: BlobId,
        view: &View,
        body: &str,
    ) -> Result<(), Trouble> {
        let mut sent = sent_of(state, frame, body);
        sent.tokens = Some(view.tokens.0);
        let has_new = |state: &State| {
            let known = &state.past.known;
            state
                .followed
                .session
                .ledger()
                .originals()
                .any(|(handle, _)| !known.contains(&handle.to_string()))
        };
        let mut notes = Vec::new();
        let mut lock = None;
        if has_new(state) {
            let got = FoldLock::take(&*self.store, &*self.clock, ask.session, || {
                state.past.read_on(&*self.store, ask.session).map(|()| has_new(state))
            })?;
            match got {
                Got::Ours(ours) => {
                    lock = Some(ours);
                    notes.extend(record(&state.followed, &state.past, &sent));
                }
                Got::NotNeeded => {}
                Got::Theirs(holder) => return Err(Trouble::Locked(holder)),
            }
        }
        notes.push(Note::Request(sent.clone()));
        self.note(ask.session, &notes)?;
        drop(lock);
        state.pending = Some(sent);
        Ok(())
    }

    fn note(&self, session: &SessionId, notes: &[Note]) -> Result<(), StoreError> {
        let ops = notes.iter().map(|note| Op::Note(session.clone(), note.event())).collect();
        self.store.commit(&Batch { at: self.clock.now(), expect: Vec::new(), ops })?;
        Ok(())
    }

    /// Follows a conversation from its first message on, by the terms of its era.
    pub(crate) fn replay(&self, terms: &Terms, arrived: Arrived, past: Past) -> Result<State, StoreError> {
        let until = past.notes.len();
        let budget = past.era(until).and_then(|era| State::told_budget(&past, &[], era));
        let terms = Terms { budget: budget.unwrap_or(terms.budget), ..terms.clone() };
        State::replay(&*self.store, arrived, &terms, past, until)
    }
}

fn sent_of(state: &State, frame: BlobId, body: &str) -> Sent {
    let session = &state.followed.session;
    Sent {
        tip: state.ids.last().map(ToString::to_string),
        from: 0,
        seen: state.past.n_own,
        frame: frame.to_string(),
        format: state.followed.conversation.format().to_string(),
        policy: session.policy().name.to_owned(),
        counter: session.counter().name().to_owned(),
        tokens: None,
        hash: blake3::hash(body.as_bytes()).to_string(),
        n_bytes: body.len() as u64,
        original: None,
    }
}

/// How far a request came.
#[derive(Default)]
struct Progress {
    is_kept: bool,
    n_new: usize,
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why").to_owned()
}
