//! A session followed to its newest message: from nothing, or on from where it stood. Both ways lead to the same bytes.

use std::collections::{BTreeMap, HashMap, HashSet};

use fanfold_core::{Budget, EntryId, Event, Handle, Summary, Tokens};
use fanfold_store::{BlobId, NodeId, Role, Store, StoreError, role_of};
use fanfold_wire::{Change, Conversation, DecodeError, Format, Incoming};

use crate::follow::pipeline::{Followed, count_changes, messages_of};
use crate::follow::terms::Terms;
use crate::log::body_frame::Skeleton;
use crate::log::notes::{Note, Noted, Sent, Summarised};
use crate::log::session_log::{Past, Places};

/// A session at one of its messages.
pub(crate) struct State {
    pub(crate) followed: Followed,
    /// The ids of its messages.
    pub(crate) ids: Vec<NodeId>,
    pub(crate) places: Places,
    pub(crate) past: Past,
    /// The note with its terms.
    pub(crate) era: usize,
    /// The note that says how its model may open folds, if any does.
    offer: Option<usize>,
    /// What held for it, in order.
    applied: Vec<(u32, usize)>,
    /// The request that left last; it is in the store and not yet among what was applied.
    pub(crate) pending: Option<Sent>,
    /// What stood around the messages last.
    pub(crate) frame: Option<(BlobId, Skeleton)>,
    /// Whether the request that left last was the first with a fold.
    pub(crate) has_new_fold: bool,
    /// Handles that are known to be noted, since a turn.
    noted: HashSet<Handle>,
    noted_since: Option<usize>,
}

/// A body that was decoded.
pub(crate) struct Arrived {
    pub(crate) conversation: Conversation,
    pub(crate) changes: Vec<Change>,
    pub(crate) ids: Vec<NodeId>,
}

impl State {
    /// Follows a conversation from its first message on, with what happened up to a note.
    ///
    /// The terms have the budget that the era began with.
    pub(crate) fn replay(
        store: &dyn Store,
        arrived: Arrived,
        terms: &Terms,
        past: Past,
        until: usize,
    ) -> Result<State, StoreError> {
        let era = past.era(until).ok_or_else(|| StoreError::Broken("a session without terms".to_owned()))?;
        let Note::Began(began) = &past.notes[era].note else { unreachable!("an era begins") };
        let places = places_of(&arrived.ids);
        let holding = past.holding(&places, era, until);
        let mut frames = Frames { store, tools: BTreeMap::new() };
        let tools = frames.tools(&began.frame)?;
        let (at, offer) = past.offer_after(until).map(|(at, offer)| (at, offer.clone())).unzip();
        let offer = offer.unwrap_or_default();
        let mut followed = Followed::start(arrived.conversation, &offer.within(terms));
        followed.add_tool(offer.tool.as_deref());
        followed.set_tools(tools.as_deref());
        walk(&mut followed, arrived.changes, &past, &holding, &mut frames)?;
        let (ids, frame, noted) = (arrived.ids, None, HashSet::new());
        Ok(State {
            followed,
            ids,
            places,
            past,
            era,
            offer: at,
            applied: holding,
            pending: None,
            frame,
            has_new_fold: false,
            noted,
            noted_since: None,
        })
    }

    /// After how many messages each stands, with those that come next.
    pub(crate) fn places_with(&mut self, ids: &[NodeId]) -> &Places {
        let new = ids.iter().enumerate().skip(self.ids.len());
        self.places.extend(new.map(|(i, id)| (*id, i as u32 + 1)));
        &self.places
    }

    /// Whether every handle of the ledger is noted.
    pub(crate) fn has_noted_all(&mut self) -> bool {
        let State { followed, past, noted, noted_since, .. } = self;
        // After a turn they are to be noted again.
        if *noted_since != past.turn {
            noted.clear();
            *noted_since = past.turn;
        }
        let mut handles = followed.session.ledger().originals().map(|(handle, _)| handle);
        handles.all(|handle| {
            noted.contains(&handle) || (past.known.contains(&handle.to_string()) && noted.insert(handle))
        })
    }

    /// Whether it can go on with new messages and what has happened since, without looking back.
    pub(crate) fn can_go_on(&self, ids: &[NodeId], holding: &[(u32, usize)]) -> bool {
        let n_notes = self.past.notes.len();
        let is_same_era = self.past.era(n_notes) == Some(self.era);
        let is_same_offer = self.past.offer_after(n_notes).map(|(at, _)| at) == self.offer;
        let n_held = self.ids.len() as u32;
        let Some(new) = holding.strip_prefix(&*self.applied) else { return false };
        let is_after = new.iter().all(|(place, _)| *place >= n_held);
        // Our own last request comes first; else somebody else was here.
        let is_ours = match (&self.pending, new.first()) {
            (Some(sent), Some((_, first))) => {
                matches!(&self.past.notes[*first].note, Note::Request(noted) if noted == sent)
            }
            (None, _) => true,
            (Some(_), None) => false,
        };
        is_same_era && is_same_offer && is_after && is_ours && ids.starts_with(&self.ids)
    }

    /// Goes on with what the same conversation says next.
    pub(crate) fn go_on(
        &mut self,
        store: &dyn Store,
        changes: Vec<Change>,
        ids: Vec<NodeId>,
        holding: Vec<(u32, usize)>,
    ) -> Result<(), StoreError> {
        self.ids = ids;
        let mut frames = Frames { store, tools: BTreeMap::new() };
        let n_known = self.applied.len() + usize::from(self.pending.take().is_some());
        walk(&mut self.followed, changes, &self.past, &holding[n_known.min(holding.len())..], &mut frames)?;
        self.applied = holding;
        Ok(())
    }

    /// The budget that was last told: a refusal may have made the session's own smaller.
    pub(crate) fn told_budget(past: &Past, holding: &[(u32, usize)], era: usize) -> Option<Budget> {
        let told = holding.iter().rev().find_map(|(_, i)| match &past.notes[*i].note {
            Note::Budget { window, reserve } => Some((*window, *reserve)),
            _ => None,
        });
        let (window, reserve) = told.or_else(|| match &past.notes.get(era)?.note {
            Note::Began(began) => Some((began.window, began.reserve)),
            _ => None,
        })?;
        Some(Budget::with_reserve(Tokens(window), Tokens(reserve)))
    }
}

/// After how many messages each of them stands.
pub(crate) fn places_of(ids: &[NodeId]) -> Places {
    ids.iter().enumerate().map(|(i, id)| (*id, i as u32 + 1)).collect::<HashMap<_, _>>()
}

/// Whether a conversation may be taken up where it was left: items of one reply make one step only if they are read
/// together.
pub(crate) fn is_between_replies(format: Format, last: Option<&str>, next: Option<&str>) -> bool {
    let is_the_models = |message: &str| matches!(role_of(message), Role::Assistant | Role::Other);
    !format.has_replies_of_many_messages()
        || !(last.is_some_and(is_the_models) && next.is_some_and(is_the_models))
}

/// Makes changes and lets things happen between them, each after its message.
fn walk(
    followed: &mut Followed,
    mut changes: Vec<Change>,
    past: &Past,
    holding: &[(u32, usize)],
    frames: &mut Frames<'_>,
) -> Result<(), StoreError> {
    count_changes(followed.session.counter(), &mut changes);
    let mut changes = changes.into_iter().peekable();
    for (place, i) in holding {
        while let Some(change) = changes.next_if(|change| place_of(change) <= *place) {
            followed.make_one(change);
        }
        apply(followed, &past.notes[*i], frames)?;
    }
    changes.for_each(|change| followed.make_one(change));
    Ok(())
}

/// After how many messages a change is complete.
fn place_of(change: &Change) -> u32 {
    match change {
        Change::Append(entry) => messages_of(entry).last().map_or(0, |last| last + 1),
        Change::Answer(_, outcome) => outcome.origin.message.saturating_add(1),
    }
}

fn apply(followed: &mut Followed, noted: &Noted, frames: &mut Frames<'_>) -> Result<(), StoreError> {
    followed.room.take(&noted.note);
    let event = match &noted.note {
        Note::Budget { .. } | Note::Corrected { .. } => Event::Budget(followed.room.budget()),
        Note::Refused { .. } => Event::Refused { limit: Some(followed.room.budget().window()) },
        Note::Cooled { .. } => Event::Cooled,
        Note::Focused { topic } => Event::Focused(topic.clone()),
        Note::Pinned { message } => match entry_of(followed, *message) {
            Some(entry) => Event::Pinned(entry),
            None => return Ok(()),
        },
        Note::Unpinned { message } => match entry_of(followed, *message) {
            Some(entry) => Event::Unpinned(entry),
            None => return Ok(()),
        },
        Note::FoldAsked { from, to } => {
            let ends = from
                .zip(*to)
                .and_then(|(from, to)| Some((entry_of(followed, from)?, entry_of(followed, to)?)));
            Event::FoldAsked { range: ends }
        }
        Note::Summarised(summary) => match summary_of(followed, summary) {
            Some(summary) => Event::Summarised(summary),
            None => return Ok(()),
        },
        Note::Unfolded { handle } => match handle.parse() {
            Ok(handle) => Event::Unfolded(handle),
            Err(_) => return Ok(()),
        },
        Note::Request(sent) => {
            followed.set_tools(frames.tools(&sent.frame)?.as_deref());
            followed.look();
            return Ok(());
        }
        _ => return Ok(()),
    };
    followed.session.apply(event);
    Ok(())
}

/// A summary as a session takes it, if what it tells of is there.
pub(crate) fn summary_of(followed: &Followed, noted: &Summarised) -> Option<Summary> {
    let upto = entry_of(followed, noted.upto)?;
    Some(Summary { text: noted.text.as_str().into(), upto, day: noted.day.clone() })
}

/// The entry that a message went into, if it is there yet.
pub(crate) fn entry_of(followed: &Followed, message: u32) -> Option<EntryId> {
    let entries = followed.session.transcript().entries();
    entries.iter().rposition(|entry| messages_of(entry).contains(&message)).map(EntryId::from)
}

/// The tool schemas of frames, each read once.
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

/// What stood around the messages of a request.
pub(crate) fn read_frame(store: &dyn Store, frame: &str) -> Result<Skeleton, StoreError> {
    let missing = || StoreError::Broken(format!("the frame {frame} of a request is not there"));
    let id: BlobId = frame.parse().map_err(|_| missing())?;
    let bytes = store.blob(id)?.ok_or_else(missing)?;
    Skeleton::read(&bytes).ok_or_else(missing)
}

/// Decodes a body that was of a format when it came, and was kept in a frame.
pub(crate) fn decode_as(
    body: &str,
    format: &str,
    frame: &Skeleton,
) -> Result<(Conversation, Vec<Change>), DecodeError> {
    let incoming = match Incoming::open(body, None) {
        Ok(incoming) if incoming.format().to_string() == format => incoming,
        _ => Incoming::open(body, format.parse().ok())?,
    };
    Ok(Conversation::read(if frame.is_plain() { incoming } else { incoming.keep_style() }))
}

#[cfg(test)]
mod tests {
    use fanfold_core::{Policy, Words};
    use fanfold_store::{Batch, MemoryStore, Millis, Op};

    use super::*;
    use crate::log::notes::Began;
    use crate::request::receive::ids_of;

    /// What happened behind a message that was followed long ago can't be made up for by going on.
    #[test]
    fn what_happened_behind_an_earlier_message_is_not_gone_on_from() {
        let body = r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},
            {"role":"user","content":"c"}]}"#;
        let (conversation, changes) = Conversation::decode(body, None).unwrap();
        let (frame, bytes) = Skeleton::of(body, &conversation).blob();
        let store = MemoryStore::default();
        store.commit(&Batch { ops: vec![Op::PutBlob(bytes)], ..Batch::default() }).unwrap();
        let (terms, format) = (String::new(), conversation.format().to_string());
        let began = Began { terms, window: 900, reserve: 0, format, frame: frame.to_string() };
        let noted = |seq, tip, note| Noted { seq, at: Millis(0), tip, note };
        let mut past = Past::default();
        past.notes.push(noted(0, None, Note::Began(began)));
        let ids = ids_of(None, conversation.messages());
        let terms = Terms {
            engine: fanfold_core::EngineFactory::FANFOLD,
            policy: Policy::fanfold(),
            budget: Budget::of_window(Tokens(900)),
            prices: None,
            counter: &Words,
            format: None,
            focus: String::new(),
            assumed: Vec::new(),
            described: String::new(),
        };
        let arrived = Arrived { conversation, changes, ids: ids.clone() };
        let mut state = State::replay(&store, arrived, &terms, past, 1).unwrap();
        let can_go_on = |state: &State| {
            let holding = state.past.holding(&state.places, state.era, state.past.notes.len());
            state.can_go_on(&ids, &holding)
        };
        assert!(can_go_on(&state));
        state.past.notes.push(noted(1, Some(ids[2]), Note::Cooled { later: false }));
        assert!(can_go_on(&state), "behind the newest one");
        state.past.notes.push(noted(2, Some(ids[0]), Note::Cooled { later: false }));
        assert!(!can_go_on(&state), "behind the first one");
    }
}
