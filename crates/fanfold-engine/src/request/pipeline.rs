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
use std::time::Instant;

use fanfold_core::{Fault, Handle, Notice, Overflow, Refusal, Tokens, View};
use fanfold_store::{Batch, Op, SessionId, StoreError};
use fanfold_wire::{DecodeError, Format, Incoming};

use crate::engine::{Engine, store_hint, store_words};
use crate::follow::pipeline::{Followed, Sizes};
use crate::follow::recall_offer::Offer;
use crate::follow::terms::Terms;
use crate::log::fold_record::record;
use crate::log::message_styles::Dresses;
use crate::log::notes::{Note, Sent};
use crate::log::session_log::Past;
use crate::request::append::{Appended, WriteTiming, retry_moved};
use crate::request::body_edits::{BodyEdits, BodyForm, REJECTED};
use crate::request::fold_lock::{FoldLock, Got};
use crate::request::memory_block::{Recollection, add_memory, within};
use crate::sessions::state::{CachedSession, DecodedBody, State};

/// What a client wants to send.
pub struct Ask<'a> {
    /// The session; it is made if it is not there.
    pub session: &'a SessionId,
    /// The body as it came.
    pub body: &'a str,
    /// What it is folded by.
    pub terms: &'a Terms,
    /// Who asks: `cli`, `proxy`, `subagent`.
    pub source: &'a str,
    /// The session of the agent that started the one who asks, if that is known. Only a new session takes it.
    pub parent: Option<&'a SessionId>,
    /// Messages that must not be folded from now on, by their numbers from 0.
    pub pins: &'a [u32],
    /// Whether a person wants it folded now, even if nothing demands it.
    pub is_by_hand: bool,
    /// How the model may open folds. Only the first request of a session decides that.
    pub offer: Option<&'a Offer>,
    /// Whether what leaves is folded.
    pub mode: Mode,
    /// From when on nobody waits for the answer, if there is such a moment.
    pub until: Option<Instant>,
    /// What is recalled from memory, at the end of what leaves folded or whole.
    pub memory: Option<Recollection<'a>>,
    /// The body as the client sent it, where `body` differs because hidden recalls were put back.
    pub received: Option<&'a str>,
    /// The form in which the provider accepts bodies that fanfold has changed.
    pub form: BodyForm,
}

impl<'a> Ask<'a> {
    /// What is usually asked: nothing is pinned or offered, and what leaves is folded.
    pub fn new(session: &'a SessionId, body: &'a str, terms: &'a Terms, source: &'a str) -> Ask<'a> {
        Ask {
            session,
            body,
            terms,
            source,
            parent: None,
            pins: &[],
            is_by_hand: false,
            offer: None,
            mode: Mode::Fold,
            until: None,
            memory: None,
            received: None,
            form: BodyForm::default(),
        }
    }
}

/// Whether what leaves is folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It is, where it has to be or that pays.
    #[default]
    Fold,
    /// It leaves as it came; what folding had made of it is told by its sizes.
    Observe,
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
    /// How many messages it left behind, because the body does not have them. A redo goes back to them.
    pub n_left: usize,
    /// What all that was said costs, and what the view does, where one was made; where none fits, the smallest there is.
    pub sizes: Option<Sizes>,
    /// What people should hear of, each once.
    pub notices: Vec<Notice>,
    /// Whether the body has the tool that was offered.
    pub has_tool: bool,
    /// What the memory at its end costs, where there is some. The sizes are without it.
    pub memory: Option<Tokens>,
    /// The handles of what this request folded first.
    pub new_handles: Vec<Handle>,
    /// Edits of the encoded body.
    pub edits: BodyEdits,
    /// The body before the rules of its provider were applied, if they changed it.
    pub unruled: Option<String>,
    /// Whether the body is the client's only because the provider refuses others.
    pub is_rejected: bool,
}

/// How a body leaves.
#[derive(Debug)]
pub enum Left {
    /// As it came, with the tool that was offered: it fits, or nobody wanted it folded.
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
    /// It took longer than anybody waits.
    #[error("it took too long")]
    Late,
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
            Trouble::Late => "give it more time, or a faster disk for the store".to_owned(),
            Trouble::Continued => "leave `previous_response_id` out to have it folded".to_owned(),
        }
    }
}

impl Engine {
    /// Stores what a client wants to send, folds it, and returns what to send.
    pub fn request(&self, ask: &Ask<'_>) -> Answer {
        self.request_with(ask, None)
    }

    /// The same for a body that was parsed before.
    pub fn request_parsed(&self, ask: &Ask<'_>, parsed: Incoming) -> Answer {
        self.request_with(ask, Some(parsed))
    }

    fn request_with(&self, ask: &Ask<'_>, mut parsed: Option<Incoming>) -> Answer {
        let reserved = ask.memory.map(|memory| within(ask.terms, memory));
        let ask = &Ask { terms: reserved.as_ref().unwrap_or(ask.terms), ..*ask };
        let mut progress = Progress::default();
        let tried = catch_unwind(AssertUnwindSafe(|| {
            retry_moved(ask.session, || self.attempt(ask, parsed.take(), &mut progress))
        }));
        let trouble = match tried {
            Ok(Ok(answer)) => return answer,
            Ok(Err(trouble)) => trouble,
            Err(panic) => Trouble::Panicked(words_of(&*panic)),
        };
        if !matches!(trouble, Trouble::NotDecoded(_) | Trouble::Continued) {
            // The messages are stored in any case.
            let timing = match trouble {
                Trouble::Overflow(_) => WriteTiming::Overflow,
                _ => WriteTiming::Unchanged,
            };
            let appended = catch_unwind(AssertUnwindSafe(|| {
                retry_moved(ask.session, || self.append(ask, None, timing))
            }));
            if let Ok(Ok(appended)) = appended {
                progress.n_new += appended.n_new;
                progress.n_left += appended.n_left;
                progress.is_kept = true;
            }
        }
        Answer {
            body: ask.body.to_owned(),
            left: Left::AsItCame(trouble),
            is_kept: progress.is_kept,
            n_new: progress.n_new,
            n_left: progress.n_left,
            sizes: progress.sizes,
            notices: Vec::new(),
            has_tool: false,
            memory: None,
            new_handles: Vec::new(),
            edits: BodyEdits::default(),
            unruled: None,
            is_rejected: false,
        }
    }

    /// One attempt. It fails with [`StoreError::Conflict`] if another process writes to the session in between.
    fn attempt(
        &self,
        ask: &Ask<'_>,
        parsed: Option<Incoming>,
        progress: &mut Progress,
    ) -> Result<Answer, Trouble> {
        let appended = match self.append(ask, parsed, WriteTiming::WithRequest) {
            Err(Trouble::Continued) => {
                progress.is_kept = true;
                return Err(Trouble::Continued);
            }
            appended => appended?,
        };
        let Appended { body, continued, effective, mut log, frame, unwritten, n_new, n_left } = appended;
        progress.is_kept |= unwritten.is_none();
        progress.n_new += n_new;
        progress.n_left += n_left;
        let mut state = match continued {
            Some(mut state) => {
                state.advance(&*self.store, body, &log, effective)?;
                *state
            }
            None => self.replay(ask.terms, body, &log)?,
        };
        let tools = state.followed.conversation.tools().map(str::to_owned);
        state.followed.set_tools(tools.as_deref());
        let view = match state.followed.view() {
            Ok(view) => view,
            Err(Refusal::Overflow(overflow)) => {
                let (transcript, view) = (state.followed.session.transcript().total(), overflow.smallest);
                let n_folds = state.followed.session.status().n_folds;
                progress.sizes = Some(Sizes { transcript, view, n_folds });
                return Err(Trouble::Overflow(Box::new(overflow)));
            }
            Err(Refusal::Fault(fault)) => return Err(Trouble::Fault(fault)),
        };
        let left = match ask.mode {
            Mode::Fold if !view.is_untouched() => Left::Folded(view.tokens),
            Mode::Fold | Mode::Observe => Left::Whole,
        };
        let edited = match ask.mode {
            Mode::Observe => EditedBody { text: ask.body.to_owned(), ..EditedBody::default() },
            Mode::Fold => edit(ask, state.followed.encode(&view), state.followed.conversation.format()),
        };
        if ask.until.is_some_and(|until| Instant::now() > until) {
            return Err(Trouble::Late);
        }
        state.frame = Some(frame);
        let (n_new, new_handles) =
            self.note_request(ask, (&mut state, &mut log), unwritten, &view, &edited)?;
        let n_new = progress.n_new + n_new;
        let notices = state.followed.session.take_notices();
        let session = &state.followed.session;
        let (transcript, n_folds) = (session.transcript().total(), session.status().n_folds);
        let has_added_tool = ask.mode == Mode::Fold && state.followed.conversation.has_added_tool();
        let answer = Answer {
            body: edited.text,
            left,
            is_kept: true,
            n_new,
            n_left: progress.n_left,
            sizes: Some(Sizes { transcript, view: view.tokens, n_folds }),
            notices,
            has_tool: has_added_tool && !edited.is_rejected && !edited.edits.rules.without_recall_tool,
            memory: edited.memory_tokens,
            new_handles,
            edits: edited.edits,
            unruled: edited.unruled,
            is_rejected: edited.is_rejected,
        };
        self.cache.put(ask.session.clone(), CachedSession { state, log });
        Ok(answer)
    }

    /// Notes new folds and the request, before the view leaves. Gives how many messages were written with them, and the
    /// handles that were noted first.
    ///
    /// A request that folds nothing new is written with its messages, at once; folds come behind what they stand for.
    fn note_request(
        &self,
        ask: &Ask<'_>,
        (state, log): (&mut State, &mut Past),
        unwritten: Option<Batch>,
        view: &View,
        body: &EditedBody,
    ) -> Result<(usize, Vec<Handle>), Trouble> {
        let mut sent = sent_of(state, log, &body.text);
        sent.edits.clone_from(&body.edits);
        sent.tokens = Some(view.tokens.0);
        sent.original = match ask.mode {
            Mode::Observe => Some(OBSERVED.to_owned()),
            Mode::Fold => body.is_rejected.then(|| REJECTED.to_owned()),
        };
        state.has_new_fold = !state.has_recorded_all(log);
        if !state.has_new_fold {
            let mut batch = unwritten.unwrap_or_else(|| self.batch());
            batch.ops.push(Op::AddEvent(ask.session.clone(), Note::Request(sent.clone()).event()));
            let n_new = self.store.commit(&batch)?.n_new_messages;
            state.pending = Some(sent);
            return Ok((n_new, Vec::new()));
        }
        let n_new = self.write_batch(unwritten)?;
        let mut notes = Vec::new();
        let got = FoldLock::take(&*self.store, &*self.clock, ask.session, || {
            log.read_on(&*self.store, ask.session).map(|()| !state.has_recorded_all(log))
        })?;
        let mut lock = None;
        match got {
            Got::Ours(ours) => {
                lock = Some(ours);
                notes.extend(record(&state.followed, log, &sent));
            }
            Got::NotNeeded => {}
            Got::Theirs(holder) => return Err(Trouble::Locked(holder)),
        }
        let new_handles = handles_of(&notes);
        notes.push(Note::Request(sent.clone()));
        let ops = notes.iter().map(|note| Op::AddEvent(ask.session.clone(), note.event())).collect();
        self.store.commit(&Batch { ops, ..self.batch() })?;
        drop(lock);
        state.pending = Some(sent);
        Ok((n_new, new_handles))
    }

    fn batch(&self) -> Batch {
        Batch { at: self.clock.now(), expected_tips: Vec::new(), ops: Vec::new() }
    }

    /// Replays a conversation from its first message on, with the budget that was recorded with its terms.
    fn replay(&self, terms: &Terms, body: DecodedBody, log: &Past) -> Result<State, StoreError> {
        let n_events = log.notes.len();
        let recorded = log.era(n_events).and_then(|event| State::recorded_budget(log, &[], event));
        let terms = Terms { budget: recorded.unwrap_or(terms.budget), ..terms.clone() };
        State::replay(&*self.store, body, &terms, log, n_events)
    }
}

/// Why a request left as it came that was only looked at.
const OBSERVED: &str = "only observed";

/// The handles that notes are the first to name.
fn handles_of(notes: &[Note]) -> Vec<Handle> {
    let folds = notes.iter().filter_map(|note| match note {
        Note::Fold(fold) => Some(&fold.handles),
        _ => None,
    });
    folds.flatten().filter_map(|(digits, ..)| digits.parse().ok()).collect()
}

fn sent_of(state: &State, log: &Past, body: &str) -> Sent {
    let Followed { session, conversation, .. } = &state.followed;
    Sent {
        tip: state.ids.last().map(ToString::to_string),
        from: 0,
        seen: log.n_own,
        frame: state.frame.as_ref().map(|(frame, _)| frame.to_string()).unwrap_or_default(),
        format: conversation.format().to_string(),
        policy: session.policy_name().to_owned(),
        counter: session.counter().name().to_owned(),
        tokens: None,
        dress: Dresses::of(conversation.styles()),
        hash: blake3::hash(body.as_bytes()).to_string(),
        n_bytes: body.len() as u64,
        original: None,
        edits: BodyEdits::default(),
    }
}

/// An encoded body with all edits applied.
#[derive(Default)]
struct EditedBody {
    text: String,
    edits: BodyEdits,
    memory_tokens: Option<Tokens>,
    /// The body before provider rules were applied, if they changed it.
    unruled: Option<String>,
    is_rejected: bool,
}

/// Adds the memory block to an encoded body, then applies the rules of the provider if the body is no longer the client's.
fn edit(ask: &Ask<'_>, encoded: String, format: Format) -> EditedBody {
    let mut edited = EditedBody { text: encoded, ..EditedBody::default() };
    if let Some(memory) = add_memory(ask, &edited.text, format) {
        edited.text = memory.body;
        edited.edits.memory = Some(memory.block);
        edited.memory_tokens = Some(memory.tokens);
    }
    let received = ask.received.unwrap_or(ask.body);
    match ask.form {
        _ if edited.text == received => {}
        BodyForm::Verbatim => {
            return EditedBody { text: received.to_owned(), is_rejected: true, ..EditedBody::default() };
        }
        BodyForm::Edited(rules) => {
            if let Some((body, rules)) = rules.apply(&edited.text, format) {
                edited.unruled = Some(std::mem::replace(&mut edited.text, body));
                edited.edits.rules = rules;
            }
        }
    }
    edited
}

/// How far a request came.
#[derive(Default)]
struct Progress {
    is_kept: bool,
    n_new: usize,
    n_left: usize,
    /// What there is, and the smallest view, where none fits.
    sizes: Option<Sizes>,
}

fn words_of(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it does not say why").to_owned()
}
