//! The stages of one request. Messages and folds are stored before the view that replaces them is sent.
//!
//! ```text
//! bytes --decode--> messages --commit--> store      originals are durable before anything replaces them
//!                      |
//!            advance the cached state               or replay the log: the bytes are the same
//!                      |
//!                    view --commit--> store         new folds and the request, before it is sent
//! ```
//!
//! If a body begins with the messages of the session, the others are appended. If it differs, the session moves back
//! to the last common message first; the dropped messages stay in the store, and a redo finds them by the recorded
//! move. If fanfold fails, the body is sent unchanged, with the error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use fanfold_core::{Handle, Notice, Overflow, Tokens, View, ViewError, ViewFault};
use fanfold_store::{Batch, Op, SessionId, StoreError};
use fanfold_wire::{DecodeError, EditFault, Incoming, check_edits};

use crate::engine::{SessionEngine, store_hint, store_message};
use crate::follow::fold_record::fold_events;
use crate::follow::folded_conversation::{FoldedConversation, Sizes};
use crate::follow::session_state::{CachedSession, DecodedConversation, SessionState, WalkError};
use crate::follow::terms::Terms;
use crate::log::body_edits::BodyEdits;
use crate::log::events::{SentRequest, SessionEvent};
use crate::log::message_styles::MessageStyles;
use crate::log::recall_offer::RecallOffer;
use crate::log::session_log::{EffectiveEvent, SessionLog};
use crate::outage::copy_of;
use crate::request::append::{LoadedSession, MAX_ATTEMPTS, MessageCounts, WriteTiming};
use crate::request::fold_lock::FoldLock;
use crate::request::memory_block::{MemoryRecall, add_memory, reserve_memory};
use crate::request::receive::ReceivedBody;
use crate::request::resend::{BodyForm, REJECTED};

/// A body to fold, with its session and settings.
pub struct RequestInput<'a> {
    /// The session. It is created if it does not exist.
    pub session: &'a SessionId,
    /// The body of the client.
    pub body: &'a str,
    /// The terms to fold it by.
    pub terms: &'a Terms,
    /// The caller: `cli`, `proxy`, `subagent`.
    pub source: &'a str,
    /// The session of the parent agent, if it is known. Recorded with a new session only.
    pub parent: Option<&'a SessionId>,
    /// Messages that must not be folded from now on, numbered from 0.
    pub pins: &'a [u32],
    /// True if the user requested the fold, so that it is done even if it is not needed yet.
    pub is_by_hand: bool,
    /// The means to recall originals. Only the first request of a session sets them.
    pub offer: Option<&'a RecallOffer>,
    /// Selects whether the view or the unchanged body is returned.
    pub mode: Mode,
    /// The caller stops waiting at this time.
    pub deadline: Option<Instant>,
    /// The memory to add at the end of the body.
    pub memory: Option<MemoryRecall<'a>>,
    /// The body as the client sent it, if `body` differs because hidden recalls were inserted.
    pub received: Option<&'a str>,
    /// The changes that the provider accepts in a body.
    pub form: BodyForm,
}

impl<'a> RequestInput<'a> {
    /// A request to fold a body, with defaults for everything else.
    pub fn new(session: &'a SessionId, body: &'a str, terms: &'a Terms, source: &'a str) -> RequestInput<'a> {
        RequestInput {
            session,
            body,
            terms,
            source,
            parent: None,
            pins: &[],
            is_by_hand: false,
            offer: None,
            mode: Mode::Fold,
            deadline: None,
            memory: None,
            received: None,
            form: BodyForm::default(),
        }
    }

    /// Returns true if the deadline has passed.
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() > deadline)
    }
}

/// Selects the body to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// The view, which is folded if that is necessary or pays.
    #[default]
    Fold,
    /// The unchanged body. The sizes of the view are reported only.
    Observe,
}

impl From<WalkError> for RequestError {
    fn from(error: WalkError) -> RequestError {
        match error {
            WalkError::Store(error) => RequestError::Store(error),
            WalkError::Late => RequestError::Late,
        }
    }
}

/// The body to send, with its sizes and folds.
#[derive(Debug)]
pub struct RequestOutcome {
    /// The body to send.
    pub body: String,
    /// The result of folding.
    pub fold: FoldOutcome,
    /// True if all messages are in the store.
    pub is_stored: bool,
    /// The number of messages that the session did not have before.
    pub n_new: usize,
    /// The number of messages of the session that the body does not have. A redo brings them back.
    pub n_dropped: usize,
    /// The sizes of transcript and view. After an overflow, the size of the smallest possible view.
    pub sizes: Option<Sizes>,
    /// Notices for the user, each reported once.
    pub notices: Vec<Notice>,
    /// True if the body has the offered recall tool.
    pub has_tool: bool,
    /// The size of the memory block. `sizes` does not include it.
    pub memory: Option<Tokens>,
    /// The handles that this request was the first to record.
    pub new_handles: Vec<Handle>,
    /// Edits of the encoded body.
    pub edits: BodyEdits,
    /// The body before the rules of its provider were applied, if they changed it.
    pub before_rules: Option<String>,
    /// True if the body of the client is sent only because the provider rejects any other.
    pub is_rejected: bool,
}

/// The result of folding a body.
#[derive(Debug)]
pub enum FoldOutcome {
    /// The body has no folds: it fits, or the mode is [`Mode::Observe`].
    Whole,
    /// The body is folded to a view of this size.
    Folded(Tokens),
    /// The body is unchanged because of an error.
    Failed(RequestError),
}

/// An error after which a body is sent unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The body is not a conversation.
    #[error("the body could not be decoded: {0}")]
    NotDecoded(#[from] DecodeError),
    /// The store failed.
    #[error("{}", store_message(.0))]
    Store(#[from] StoreError),
    /// Another process holds the fold lock of the session.
    #[error("{0} holds the fold lock of this session and does not release it")]
    Locked(String),
    /// No view fits the budget.
    #[error("{0}")]
    Overflow(Box<Overflow>),
    /// The view violates an invariant.
    #[error("the view violates an invariant and was not used: {0}")]
    Fault(ViewFault),
    /// An edit of the encoded body damaged it.
    #[error("{0}; the edited body was not used")]
    Edit(#[from] EditFault),
    /// Only the provider has the first messages, so there is nothing to fold.
    #[error("the provider holds the beginning of the conversation")]
    Continued,
    /// The deadline passed.
    #[error("the deadline passed before the view was ready")]
    Late,
    /// Code of fanfold panicked.
    #[error("fanfold failed: {0}")]
    Panicked(String),
}

impl RequestError {
    /// The next step for the user.
    pub fn hint(&self) -> String {
        match self {
            RequestError::NotDecoded(error) => error.hint().to_owned(),
            RequestError::Store(error) => store_hint(error),
            RequestError::Locked(_) => "try again; the lock expires after 30 seconds".to_owned(),
            RequestError::Overflow(overflow) => overflow.remedy.clone(),
            RequestError::Fault(_) | RequestError::Edit(_) | RequestError::Panicked(_) => {
                "this is a bug in fanfold; please report it".to_owned()
            }
            RequestError::Late => "use a longer deadline, or a faster disk for the store".to_owned(),
            RequestError::Continued => "leave `previous_response_id` out to have it folded".to_owned(),
        }
    }
}

impl SessionEngine {
    /// Stores the messages of a body, folds it, and returns the body to send.
    pub fn request(&self, input: &RequestInput<'_>) -> RequestOutcome {
        self.request_with(input, None)
    }

    /// The same for a parsed body.
    pub fn request_parsed(&self, input: &RequestInput<'_>, parsed: Incoming) -> RequestOutcome {
        self.request_with(input, Some(parsed))
    }

    /// Repeats attempts while other processes write to the session, until the deadline.
    fn request_with(&self, input: &RequestInput<'_>, mut parsed: Option<Incoming>) -> RequestOutcome {
        let reserved = input.memory.map(|memory| reserve_memory(input.terms, memory));
        let input = &RequestInput { terms: reserved.as_ref().unwrap_or(input.terms), ..*input };
        let mut progress = AttemptProgress::default();
        let mut cached = self.cache.take(input.session);
        self.hold_during_outage(input.session, cached.as_ref());
        let mut n_left = MAX_ATTEMPTS;
        let mut outcome = loop {
            n_left -= 1;
            let attempt = || self.attempt(input, parsed.take(), &mut cached, &mut progress);
            let error = match catch_panic(attempt) {
                Ok(outcome) => break outcome,
                Err(error) if is_overtaken(&error) && input.is_late() => RequestError::Late,
                Err(error) if is_overtaken(&error) && n_left > 0 => continue,
                Err(error) if n_left > 0 && self.continue_in_memory(input, &error, cached.as_ref()) => {
                    progress = AttemptProgress::default();
                    continue;
                }
                Err(error) => error,
            };
            // The messages are stored even if the body could not be folded.
            match catch_panic(|| self.store_unchanged(input, &error, &mut progress)) {
                Err(conflict) if is_overtaken(&conflict) && n_left > 0 => {}
                Ok(()) | Err(_) => break RequestOutcome::failed(input, error, &progress),
            }
        };
        // An attempt takes the cached session before it changes it, so a session that is left is unchanged.
        if let Some(cached) = cached {
            self.cache.put(input.session.clone(), cached);
        }
        outcome.is_stored &= !self.fallback.is_held(input.session);
        outcome
    }

    /// Continues the session in memory if an attempt failed because of the store. Returns false if that does not help.
    fn continue_in_memory(
        &self,
        input: &RequestInput<'_>,
        error: &RequestError,
        cached: Option<&CachedSession>,
    ) -> bool {
        let RequestError::Store(error) = error else { return false };
        self.hold(input.session, error, || cached.map(|cached| copy_of(input.session, cached)))
    }

    /// Stores the messages of a body that is sent unchanged because of an error.
    fn store_unchanged(
        &self,
        input: &RequestInput<'_>,
        error: &RequestError,
        progress: &mut AttemptProgress,
    ) -> Result<(), RequestError> {
        let timing = match error {
            RequestError::NotDecoded(_) | RequestError::Continued => return Ok(()),
            RequestError::Overflow(_) => WriteTiming::Overflow,
            _ => WriteTiming::Unchanged,
        };
        let appended = self.append(input, None, &mut None, timing)?;
        progress.add(appended.counts);
        progress.is_stored = true;
        Ok(())
    }

    /// One attempt. It fails with [`StoreError::Conflict`] if another process writes to the session in between.
    fn attempt(
        &self,
        input: &RequestInput<'_>,
        parsed: Option<Incoming>,
        cached: &mut Option<CachedSession>,
        progress: &mut AttemptProgress,
    ) -> Result<RequestOutcome, RequestError> {
        let appended = match self.append(input, parsed, cached, WriteTiming::WithRequest) {
            Err(RequestError::Continued) => {
                progress.is_stored = true;
                return Err(RequestError::Continued);
            }
            appended => appended?,
        };
        progress.is_stored |= appended.unwritten.is_none();
        progress.add(appended.counts);
        let mut session = self.build_state(input, appended.session, appended.effective)?;
        let view = build_view(&mut session.state.followed, progress)?;
        let edited = match input.mode {
            Mode::Observe => EditedBody { text: input.body.to_owned(), ..EditedBody::default() },
            Mode::Fold => edit(input, &session.state.followed, &view)?,
        };
        if input.is_late() {
            return Err(RequestError::Late);
        }
        let recorded = self.record_request(input, &mut session, appended.unwritten, &view, &edited)?;
        progress.n_new += recorded.n_new;
        let outcome = RequestOutcome {
            n_new: progress.n_new,
            n_dropped: progress.n_dropped,
            new_handles: recorded.new_handles,
            ..RequestOutcome::sent(input, &mut session.state.followed, &view, edited)
        };
        self.cache.put(input.session.clone(), session);
        Ok(outcome)
    }

    /// The state of the session after the messages of the body: the cached state advanced, or a replay.
    fn build_state(
        &self,
        input: &RequestInput<'_>,
        session: LoadedSession,
        effective: Vec<EffectiveEvent>,
    ) -> Result<CachedSession, RequestError> {
        let LoadedSession { body, log, frame } = session;
        let mut state = match body {
            ReceivedBody::Continued(mut state, changes) => {
                state.advance(&*self.store, changes, &log, effective, input.deadline)?;
                *state
            }
            ReceivedBody::Whole(body) => self.replay(input, *body, &log)?,
        };
        state.frame = Some(frame);
        let tools = state.followed.conversation.tools().map(str::to_owned);
        state.followed.set_tools(tools.as_deref());
        Ok(CachedSession { state, log })
    }

    /// Records new folds and the request, before the view is sent.
    ///
    /// Without new folds, the request is written in one batch with its messages. Otherwise the messages are written
    /// first, because they are the originals of the folds.
    fn record_request(
        &self,
        input: &RequestInput<'_>,
        session: &mut CachedSession,
        unwritten: Option<Batch>,
        view: &View,
        body: &EditedBody,
    ) -> Result<RecordedRequest, RequestError> {
        let CachedSession { state, log } = &mut *session;
        let mut sent = describe_request(state, log, &body.text);
        sent.edits.clone_from(&body.edits);
        sent.tokens = Some(view.tokens.0);
        sent.bypass_reason = match input.mode {
            Mode::Observe => Some(OBSERVED.to_owned()),
            Mode::Fold => body.is_rejected.then(|| REJECTED.to_owned()),
        };
        state.has_new_fold = !state.has_recorded_all(log);
        let recorded = if state.has_new_fold {
            let n_new = self.write_batch(unwritten)?;
            let new_handles = self.record_folds(input, session, &sent)?;
            RecordedRequest { n_new, new_handles }
        } else {
            let mut batch = unwritten.unwrap_or_else(|| self.batch());
            batch.ops.push(Op::AddEvent(input.session.clone(), SessionEvent::Request(sent.clone()).encode()));
            let n_new = self.store.commit(&batch)?.n_new_messages;
            RecordedRequest { n_new, new_handles: Vec::new() }
        };
        session.state.pending = Some(sent);
        Ok(recorded)
    }

    /// Records the new folds and the request that was sent with them. Returns the handles that were recorded first.
    fn record_folds(
        &self,
        input: &RequestInput<'_>,
        session: &mut CachedSession,
        sent: &SentRequest,
    ) -> Result<Vec<Handle>, RequestError> {
        let (id, CachedSession { state, log }) = (input.session, session);
        let outcome = FoldLock::acquire(&*self.store, &*self.clock, id, input.deadline, || {
            log.read_new(&*self.store, id).map(|()| !state.has_recorded_all(log))
        })?;
        let (_lock, mut events) = match outcome {
            FoldLock::Acquired(lock) | FoldLock::Failed(lock) => {
                (Some(lock), fold_events(&state.followed, log, sent))
            }
            FoldLock::NotNeeded => (None, Vec::new()),
            FoldLock::HeldByOther(holder) => return Err(RequestError::Locked(holder)),
        };
        let new_handles = handles_of(&events);
        events.push(SessionEvent::Request(sent.clone()));
        let ops = events.iter().map(|event| Op::AddEvent(id.clone(), event.encode())).collect();
        self.store.commit(&Batch { ops, ..self.batch() })?;
        Ok(new_handles)
    }

    fn batch(&self) -> Batch {
        Batch { at: self.clock.now(), expected_tips: Vec::new(), ops: Vec::new() }
    }

    /// Replays a conversation from its first message on, with the budget that was recorded with its terms.
    fn replay(
        &self,
        input: &RequestInput<'_>,
        body: DecodedConversation,
        log: &SessionLog,
    ) -> Result<SessionState, WalkError> {
        let terms = input.terms;
        let n_events = log.events.len();
        let recorded =
            log.terms_event(n_events).and_then(|event| SessionState::recorded_budget(log, &[], event));
        let terms = Terms { budget: recorded.unwrap_or(terms.budget), ..terms.clone() };
        SessionState::replay(&*self.store, body, &terms, log, n_events, input.deadline)
    }
}

impl RequestOutcome {
    /// The outcome of a request whose view was recorded. The caller adds the number of new messages, the number of
    /// dropped messages and the new handles.
    fn sent(
        input: &RequestInput<'_>,
        followed: &mut FoldedConversation,
        view: &View,
        edited: EditedBody,
    ) -> RequestOutcome {
        let fold = match input.mode {
            Mode::Fold if !view.is_untouched() => FoldOutcome::Folded(view.tokens),
            Mode::Fold | Mode::Observe => FoldOutcome::Whole,
        };
        let has_added_tool = input.mode == Mode::Fold && followed.conversation.has_added_tool();
        RequestOutcome {
            body: edited.text,
            fold,
            is_stored: true,
            n_new: 0,
            n_dropped: 0,
            sizes: Some(sizes_of(followed, view.tokens)),
            notices: followed.session.take_notices(),
            has_tool: has_added_tool && !edited.is_rejected && !edited.edits.rules.without_recall_tool,
            memory: edited.memory_tokens,
            new_handles: Vec::new(),
            edits: edited.edits,
            before_rules: edited.before_rules,
            is_rejected: edited.is_rejected,
        }
    }

    /// The outcome of a request whose body is sent unchanged because of an error.
    fn failed(input: &RequestInput<'_>, error: RequestError, progress: &AttemptProgress) -> RequestOutcome {
        RequestOutcome {
            body: input.body.to_owned(),
            fold: FoldOutcome::Failed(error),
            is_stored: progress.is_stored,
            n_new: progress.n_new,
            n_dropped: progress.n_dropped,
            sizes: progress.sizes,
            notices: Vec::new(),
            has_tool: false,
            memory: None,
            new_handles: Vec::new(),
            edits: BodyEdits::default(),
            before_rules: None,
            is_rejected: false,
        }
    }
}

/// Builds the view. After an overflow, records the size of the smallest possible view in `progress`.
fn build_view(
    followed: &mut FoldedConversation,
    progress: &mut AttemptProgress,
) -> Result<View, RequestError> {
    match followed.view() {
        Ok(view) => Ok(view),
        Err(ViewError::Overflow(overflow)) => {
            progress.sizes = Some(sizes_of(followed, overflow.smallest));
            Err(RequestError::Overflow(Box::new(overflow)))
        }
        Err(ViewError::Fault(fault)) => Err(RequestError::Fault(fault)),
    }
}

/// The sizes of a conversation with a view of this size.
fn sizes_of(followed: &FoldedConversation, view: Tokens) -> Sizes {
    let session = &followed.session;
    Sizes { transcript: session.transcript().total(), view, n_folds: session.status().n_folds }
}

/// Recorded with a request that was sent unchanged because of [`Mode::Observe`].
const OBSERVED: &str = "only observed";

/// The handles of the folds among some events.
fn handles_of(events: &[SessionEvent]) -> Vec<Handle> {
    let folds = events.iter().filter_map(|event| match event {
        SessionEvent::Fold(fold) => Some(&fold.handles),
        _ => None,
    });
    folds.flatten().filter_map(|(digits, ..)| digits.parse().ok()).collect()
}

/// The record of a request, without the fields that only the caller knows.
fn describe_request(state: &SessionState, log: &SessionLog, body: &str) -> SentRequest {
    let FoldedConversation { session, conversation, .. } = &state.followed;
    SentRequest {
        tip: state.messages.ids.last().map(ToString::to_string),
        from: 0,
        n_seen_events: log.n_read,
        frame: state.frame.as_ref().map(|(frame, _)| frame.to_string()).unwrap_or_default(),
        format: conversation.format().to_string(),
        policy: session.policy_name().to_owned(),
        counter: session.counter().name().to_owned(),
        tokens: None,
        styles: MessageStyles::new(conversation.styles()),
        hash: blake3::hash(body.as_bytes()).to_string(),
        n_bytes: body.len() as u64,
        bypass_reason: None,
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
    before_rules: Option<String>,
    is_rejected: bool,
}

/// Encodes a view and adds the memory block, then applies the rules of the provider if the body differs from the
/// client's. Every edit is checked, because the view was checked before it.
fn edit(
    input: &RequestInput<'_>,
    followed: &FoldedConversation,
    view: &View,
) -> Result<EditedBody, RequestError> {
    let format = followed.conversation.format();
    let mut edited = EditedBody { text: followed.encode(view), ..EditedBody::default() };
    if let Some(memory) = add_memory(input, &edited.text, format) {
        check_edits(&edited.text, &memory.body, format)?;
        edited.text = memory.body;
        edited.edits.memory = Some(memory.block);
        edited.memory_tokens = Some(memory.tokens);
    }
    let received = input.received.unwrap_or(input.body);
    match input.form {
        _ if edited.text == received => {}
        BodyForm::Verbatim => {
            return Ok(EditedBody { text: received.to_owned(), is_rejected: true, ..EditedBody::default() });
        }
        BodyForm::Edited(rules) => {
            if let Some((body, rules)) = rules.apply(&edited.text, format) {
                check_edits(&edited.text, &body, format)?;
                edited.before_rules = Some(std::mem::replace(&mut edited.text, body));
                edited.edits.rules = rules;
            }
        }
    }
    Ok(edited)
}

/// The effects of all attempts of a request so far.
#[derive(Default)]
struct AttemptProgress {
    is_stored: bool,
    n_new: usize,
    n_dropped: usize,
    /// The sizes after an overflow.
    sizes: Option<Sizes>,
}

impl AttemptProgress {
    fn add(&mut self, counts: MessageCounts) {
        self.n_new += counts.n_new;
        self.n_dropped += counts.n_dropped;
    }
}

/// The effects of recording a request.
struct RecordedRequest {
    /// The number of new messages that were written with it.
    n_new: usize,
    /// The handles that were recorded first.
    new_handles: Vec<Handle>,
}

/// Calls a function and turns a panic into an error.
fn catch_panic<T>(call: impl FnOnce() -> Result<T, RequestError>) -> Result<T, RequestError> {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or(panic.downcast_ref::<&str>().copied());
        Err(RequestError::Panicked(message.unwrap_or("a panic without a message").to_owned()))
    })
}

/// Returns true if another process has written to the session during an attempt.
fn is_overtaken(error: &RequestError) -> bool {
    matches!(error, RequestError::Store(StoreError::Conflict(_) | StoreError::SessionExists(_)))
}
