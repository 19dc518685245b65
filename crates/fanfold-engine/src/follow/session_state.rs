//! The state of a session: its messages and events replayed to the newest message. A replay from the start and an
//! update of a cached state give the same bytes.

use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

use fanfold_core::{Budget, EntryId, Event, Handle, Summary, Tokens};
use fanfold_store::{BlobId, NodeId, Role, Store, StoreError};
use fanfold_wire::{Change, Conversation, DecodeError, Format, Incoming};

use crate::follow::folded_conversation::{FoldedConversation, count_changes, messages_of};
use crate::follow::terms::Terms;
use crate::log::body_frame::BodyFrame;
use crate::log::events::{LoggedEvent, SentRequest, SessionEvent, SummaryRecord};
use crate::log::session_log::{EffectiveEvent, Positions, SessionLog};

/// A session replayed to one of its messages.
pub(crate) struct SessionState {
    pub(crate) followed: FoldedConversation,
    pub(crate) messages: MessageList,
    /// The number of messages that were applied.
    n_followed: usize,
    /// The index of the event with its terms.
    pub(crate) terms_event: usize,
    /// The index of the event with its recall offer, if there is one.
    offer_event: Option<usize>,
    /// The events that were applied, in order.
    applied: Vec<EffectiveEvent>,
    /// The last request. It is in the store, but not yet among the applied events.
    pub(crate) pending: Option<SentRequest>,
    /// The body frame of the last request.
    pub(crate) frame: Option<(BlobId, BodyFrame)>,
    /// True if the last request was the first with a new fold.
    pub(crate) has_new_fold: bool,
    /// Handles that are known to be recorded since the last move of the session.
    recorded: HashSet<Handle>,
    recorded_since: Option<usize>,
}

/// Why a state could not be built.
#[derive(Debug)]
pub(crate) enum WalkError {
    /// The store failed.
    Store(StoreError),
    /// The deadline passed.
    Late,
}

impl From<StoreError> for WalkError {
    fn from(error: StoreError) -> WalkError {
        WalkError::Store(error)
    }
}

/// A session as the cache keeps it.
pub(crate) struct CachedSession {
    pub(crate) state: SessionState,
    pub(crate) log: SessionLog,
}

/// A decoded body.
pub(crate) struct DecodedConversation {
    pub(crate) conversation: Conversation,
    /// The changes of the transcript by all messages.
    pub(crate) changes: Vec<Change>,
    pub(crate) messages: MessageList,
}

/// The messages of a conversation: their ids in order, and the position of each id.
#[derive(Default)]
pub(crate) struct MessageList {
    pub(crate) ids: Vec<NodeId>,
    pub(crate) positions: Positions,
}

impl MessageList {
    pub(crate) fn new(ids: Vec<NodeId>) -> MessageList {
        let mut messages = MessageList::default();
        messages.extend(ids);
        messages
    }

    /// Appends messages.
    pub(crate) fn extend(&mut self, ids: Vec<NodeId>) {
        let first = self.ids.len() as u32 + 1;
        self.positions.extend(ids.iter().copied().zip(first..));
        self.ids.extend(ids);
    }
}

impl SessionState {
    /// Replays a conversation from its first message, with the first `n_events` events of the log, unless a deadline
    /// passes. The terms have the recorded budget.
    pub(crate) fn replay(
        store: &dyn Store,
        body: DecodedConversation,
        terms: &Terms,
        log: &SessionLog,
        n_events: usize,
        deadline: Option<Instant>,
    ) -> Result<SessionState, WalkError> {
        let DecodedConversation { conversation, changes, messages } = body;
        let missing = || StoreError::Corrupt("a session without terms".to_owned());
        let terms_event = log.terms_event(n_events).ok_or_else(missing)?;
        let SessionEvent::NewTerms(began) = &log.events[terms_event].event else {
            unreachable!("it sets terms")
        };
        let applied = log.effective_events(&messages.positions, terms_event, n_events);
        let mut frames = Frames { store, tools: BTreeMap::new() };
        let tools = frames.tools(&began.frame)?;
        let (offer_event, offer) =
            log.offer_before(n_events).map(|(event, offer)| (event, offer.clone())).unzip();
        let offer = offer.unwrap_or_default();
        let mut followed = FoldedConversation::new(conversation, &terms.with_offer(&offer));
        followed.add_tool(offer.tool.as_deref());
        followed.set_tools(tools.as_deref());
        walk(&mut followed, changes, (log, &applied), &mut frames, deadline)?;
        Ok(SessionState {
            followed,
            n_followed: messages.ids.len(),
            messages,
            terms_event,
            offer_event,
            applied,
            pending: None,
            frame: None,
            has_new_fold: false,
            recorded: HashSet::new(),
            recorded_since: None,
        })
    }

    /// True if every handle of the ledger is recorded in the log.
    pub(crate) fn has_recorded_all(&mut self, log: &SessionLog) -> bool {
        // After a move they have to be recorded again.
        if self.recorded_since != log.last_move {
            self.recorded.clear();
            self.recorded_since = log.last_move;
        }
        let recorded = &mut self.recorded;
        let mut handles = self.followed.session.ledger().originals().map(|(handle, _)| handle);
        handles.all(|handle| {
            recorded.contains(&handle)
                || (log.recorded_handles.contains(&handle.to_string()) && recorded.insert(handle))
        })
    }

    /// True if new messages and events can be applied to it without a replay.
    pub(crate) fn can_advance(&self, log: &SessionLog, effective: &[EffectiveEvent]) -> bool {
        let n_events = log.events.len();
        let has_same_terms = log.terms_event(n_events) == Some(self.terms_event);
        let has_same_offer = log.offer_before(n_events).map(|(event, _)| event) == self.offer_event;
        let Some(new) = effective.strip_prefix(&*self.applied) else { return false };
        let are_after = new.iter().all(|(position, _)| *position as usize >= self.n_followed);
        // The first new event must be our last request; otherwise another process sent one.
        let is_ours = match (&self.pending, new.first()) {
            (Some(sent), Some((_, first))) => {
                matches!(&log.events[*first].event, SessionEvent::Request(recorded) if recorded == sent)
            }
            (None, _) => true,
            (Some(_), None) => false,
        };
        has_same_terms && has_same_offer && are_after && is_ours
    }

    /// Applies the changes by the messages that were added to it, and the new events. If the deadline passes in
    /// between, the state is incomplete and must not be used.
    pub(crate) fn advance(
        &mut self,
        store: &dyn Store,
        changes: Vec<Change>,
        log: &SessionLog,
        effective: Vec<EffectiveEvent>,
        deadline: Option<Instant>,
    ) -> Result<(), WalkError> {
        self.n_followed = self.messages.ids.len();
        let mut frames = Frames { store, tools: BTreeMap::new() };
        let n_applied = self.applied.len() + usize::from(self.pending.take().is_some());
        let new = &effective[n_applied.min(effective.len())..];
        walk(&mut self.followed, changes, (log, new), &mut frames, deadline)?;
        self.applied = effective;
        Ok(())
    }

    /// The last recorded budget. The session's own may be smaller after a refusal.
    pub(crate) fn recorded_budget(
        log: &SessionLog,
        effective: &[EffectiveEvent],
        terms_event: usize,
    ) -> Option<Budget> {
        let changed = effective.iter().rev().find_map(|(_, event)| match &log.events[*event].event {
            SessionEvent::Budget { window, reserve } => Some((*window, *reserve)),
            _ => None,
        });
        let (window, reserve) = changed.or_else(|| match &log.events.get(terms_event)?.event {
            SessionEvent::NewTerms(began) => Some((began.window, began.reserve)),
            _ => None,
        })?;
        Some(Budget::with_reserve(Tokens(window), Tokens(reserve)))
    }
}

/// True if a cached state can be updated from between two messages. The items of one Responses reply become one
/// step only if they are decoded together.
pub(crate) fn is_between_replies(format: Format, last: Option<&str>, next: Option<&str>) -> bool {
    let is_from_model = |message: &str| matches!(Role::from_message(message), Role::Assistant | Role::Other);
    let is_inside_reply = last.is_some_and(is_from_model) && next.is_some_and(is_from_model);
    !format.has_replies_of_many_messages() || !is_inside_reply
}

/// Applies changes and events of the log, each event after its message.
fn walk(
    followed: &mut FoldedConversation,
    mut changes: Vec<Change>,
    (log, events): (&SessionLog, &[EffectiveEvent]),
    frames: &mut Frames<'_>,
    deadline: Option<Instant>,
) -> Result<(), WalkError> {
    count_changes(followed.session.counter(), &mut changes);
    let mut changes = changes.into_iter().peekable();
    let apply_change = |followed: &mut FoldedConversation, change| {
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(WalkError::Late);
        }
        followed.apply_change(change);
        Ok(())
    };
    for (position, event) in events {
        while let Some(change) = changes.next_if(|change| position_of(change) <= *position) {
            apply_change(followed, change)?;
        }
        apply(followed, &log.events[*event], frames)?;
    }
    changes.try_for_each(|change| apply_change(followed, change))
}

/// The number of messages after which a change is complete.
fn position_of(change: &Change) -> u32 {
    match change {
        Change::Append(entry) => messages_of(entry).last().map_or(0, |last| last + 1),
        Change::Answer(_, outcome) => outcome.origin.message.saturating_add(1),
    }
}

fn apply(
    followed: &mut FoldedConversation,
    noted: &LoggedEvent,
    frames: &mut Frames<'_>,
) -> Result<(), StoreError> {
    followed.session_budget.apply(&noted.event);
    let event = match &noted.event {
        SessionEvent::Budget { .. } | SessionEvent::TokenRatio { .. } => {
            Event::Budget(followed.session_budget.budget())
        }
        SessionEvent::Refused { .. } => {
            Event::Refused { limit: Some(followed.session_budget.budget().window()) }
        }
        SessionEvent::CacheExpired { .. } => Event::CacheExpired,
        SessionEvent::Focused { topic } => Event::Focused(topic.clone()),
        SessionEvent::Pinned { message } => match entry_of(followed, *message) {
            Some(entry) => Event::Pinned(entry),
            None => return Ok(()),
        },
        SessionEvent::Unpinned { message } => match entry_of(followed, *message) {
            Some(entry) => Event::Unpinned(entry),
            None => return Ok(()),
        },
        SessionEvent::FoldRequested { from, to } => {
            let range = from
                .zip(*to)
                .and_then(|(from, to)| Some((entry_of(followed, from)?, entry_of(followed, to)?)));
            Event::FoldRequested { range }
        }
        SessionEvent::Summarised(summary) => match summary_of(followed, summary) {
            Some(summary) => Event::SummaryWritten(summary),
            None => return Ok(()),
        },
        SessionEvent::Unfolded { handle } => match handle.parse() {
            Ok(handle) => Event::Unfolded(handle),
            Err(_) => return Ok(()),
        },
        SessionEvent::Request(sent) => {
            followed.set_tools(frames.tools(&sent.frame)?.as_deref());
            followed.replay_request();
            return Ok(());
        }
        _ => return Ok(()),
    };
    followed.session.apply(event);
    Ok(())
}

/// Converts a recorded summary for the session; none if the session lacks the messages that it covers.
pub(crate) fn summary_of(followed: &FoldedConversation, recorded: &SummaryRecord) -> Option<Summary> {
    let upto = entry_of(followed, recorded.upto)?;
    Some(Summary { text: recorded.text.as_str().into(), upto, day: recorded.day.clone() })
}

/// The entry that contains a message, if the message was applied.
pub(crate) fn entry_of(followed: &FoldedConversation, message: u32) -> Option<EntryId> {
    let entries = followed.session.transcript().entries();
    entries.iter().rposition(|entry| messages_of(entry).contains(&message)).map(EntryId::from)
}

/// Reads the tool schemas of body frames, each frame once.
struct Frames<'s> {
    store: &'s dyn Store,
    tools: BTreeMap<String, Option<String>>,
}

impl Frames<'_> {
    fn tools(&mut self, frame: &str) -> Result<Option<String>, StoreError> {
        if let Some(tools) = self.tools.get(frame) {
            return Ok(tools.clone());
        }
        let read = read_frame(self.store, frame)?;
        let tools = read.tools().map(str::to_owned);
        self.tools.insert(frame.to_owned(), tools.clone());
        Ok(tools)
    }
}

/// Reads the body frame of a request: the JSON around its messages.
pub(crate) fn read_frame(store: &dyn Store, frame: &str) -> Result<BodyFrame, StoreError> {
    let missing = || StoreError::Corrupt(format!("the body frame {frame} of a request is missing"));
    let id: BlobId = frame.parse().map_err(|_| missing())?;
    let bytes = store.blob(id)?.ok_or_else(missing)?;
    BodyFrame::decode(&bytes).ok_or_else(missing)
}

/// Decodes a body assembled from the store, in the format that was recorded for it.
pub(crate) fn decode_as(
    body: &str,
    format: &str,
    frame: &BodyFrame,
) -> Result<(Conversation, Vec<Change>), DecodeError> {
    let incoming = match Incoming::open(body, None) {
        Ok(incoming) if incoming.format().to_string() == format => incoming,
        _ => Incoming::open(body, format.parse().ok())?,
    };
    Ok(Conversation::read(if frame.has_plain_messages() { incoming } else { incoming.keep_style() }))
}

#[cfg(test)]
mod tests {
    use fanfold_core::{Policy, Words};
    use fanfold_store::{Batch, Millis, Op, SqliteStore};

    use super::*;
    use crate::log::events::NewTerms;
    use crate::request::receive::ids_of;

    #[test]
    fn a_replay_ends_at_its_deadline() {
        let messages: Vec<String> =
            (0..50).map(|i| format!(r#"{{"role":"user","content":"{i}"}}"#)).collect();
        let body = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
        let (conversation, changes) = Conversation::decode(&*body, None).unwrap();
        let mut followed = FoldedConversation::new(conversation, &test_terms());
        let store = SqliteStore::in_memory();
        let mut frames = Frames { store: &store, tools: BTreeMap::new() };
        let deadline = Some(Instant::now());
        let walked = walk(&mut followed, changes, (&SessionLog::default(), &[]), &mut frames, deadline);
        assert!(matches!(walked, Err(WalkError::Late)), "{walked:?}");
        assert_eq!(followed.session.transcript().len(), 0);
    }

    fn test_terms() -> Terms {
        Terms {
            engine: fanfold_core::EngineFactory::FANFOLD,
            policy: Policy::fanfold(),
            budget: Budget::of_window(Tokens(900)),
            prices: None,
            counter: &Words,
            format: None,
            focus: String::new(),
            assumed: Vec::new(),
            described: String::new(),
        }
    }

    #[test]
    fn an_event_after_an_earlier_message_needs_a_replay() {
        let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},
            {"role":"user","content":"c"}]}"#;
        let (conversation, changes) = Conversation::decode(body, None).unwrap();
        let (frame, bytes) = BodyFrame::new(body, &conversation).blob();
        let store = SqliteStore::in_memory();
        store.commit(&Batch { ops: vec![Op::PutBlob(bytes)], ..Batch::default() }).unwrap();
        let (terms, format) = (String::new(), conversation.format().to_string());
        let began = NewTerms { terms, window: 900, reserve: 0, format, frame: frame.to_string() };
        let noted = |seq, tip, note| LoggedEvent { seq, at: Millis(0), tip, event: note };
        let mut log = SessionLog::default();
        log.events.push(noted(0, None, SessionEvent::NewTerms(began)));
        let ids = ids_of(None, conversation.messages());
        let body = DecodedConversation { conversation, changes, messages: MessageList::new(ids.clone()) };
        let state = SessionState::replay(&store, body, &test_terms(), &log, 1, None).unwrap();
        let can_advance = |log: &SessionLog| {
            let effective =
                log.effective_events(&state.messages.positions, state.terms_event, log.events.len());
            state.can_advance(log, &effective)
        };
        assert!(can_advance(&log));
        log.events.push(noted(1, Some(ids[2]), SessionEvent::CacheExpired { later: false }));
        assert!(can_advance(&log), "after the newest message");
        log.events.push(noted(2, Some(ids[0]), SessionEvent::CacheExpired { later: false }));
        assert!(!can_advance(&log), "after the first message");
    }
}
