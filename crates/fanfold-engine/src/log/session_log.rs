//! What has happened to a session, and which of it holds for a chain of messages.
//!
//! A fork goes on with what happened before it in the session that it came from, so that its view begins with the one
//! that the provider has seen. What happened behind a message holds for the chains that have the message: a rewind
//! takes it back, and a redo brings it back.

use std::collections::{BTreeSet, HashMap};

use fanfold_store::{EventRow, Millis, NodeId, SessionId, Store, StoreError};

use crate::log::notes::{Kept, Note, Noted};
use crate::summary_jobs::Backoff;

/// The position of each message in a conversation, counted from 1.
pub(crate) type Positions = HashMap<NodeId, u32>;

/// An event that is in force: the number of messages before it, and its index in the log.
pub(crate) type EffectiveEvent = (u32, usize);

/// The kind of the note that says where a session came from.
pub(crate) const FORKED: &str = "forked";
/// The kind of the note with what a session that went left to it.
pub(crate) const INHERITED: &str = "inherited";

/// Forks of forks are followed so far back.
const MOST_FORKS: usize = 1000;

/// What has happened to a session, oldest first, beginning with what it inherited.
#[derive(Debug, Clone, Default)]
pub(crate) struct Past {
    pub(crate) notes: Vec<Noted>,
    /// How many events of its own were read.
    pub(crate) n_own: u32,
    /// The notes before this one are inherited.
    pub(crate) own_from: usize,
    /// Every handle that was ever given.
    pub(crate) handles: BTreeSet<String>,
    /// The handles that were given on the way to where the session points: a fork from there has them noted.
    pub(crate) known: BTreeSet<String>,
    /// The note of the last turn that the known handles follow from.
    pub(crate) turn: Option<usize>,
    /// Every frame that was kept.
    pub(crate) frames: BTreeSet<String>,
    /// How many recalls beside calls of the client's there were.
    pub(crate) n_besides: usize,
    /// Whether any of it may have been undone.
    pub(crate) may_be_undone: bool,
}

impl Past {
    /// Reads all of it.
    pub(crate) fn read(store: &dyn Store, session: &SessionId) -> Result<Past, StoreError> {
        let mut past = Past::default();
        past.read_on(store, session)?;
        Ok(past)
    }

    /// Reads what has happened since.
    pub(crate) fn read_on(&mut self, store: &dyn Store, session: &SessionId) -> Result<(), StoreError> {
        let events = store.events(session, self.n_own)?;
        let is_first = self.n_own == 0;
        self.n_own = events.last().map_or(self.n_own, |last| last.seq + 1);
        if is_first {
            self.take_all(store, &events, MOST_FORKS)?;
        } else {
            // What is left to it by a session that went was read from that session before.
            events
                .iter()
                .filter(|event| event.kind != INHERITED)
                .try_for_each(|event| self.take(store, event, 0))?;
        }
        self.turn_away(store)
    }

    /// After a turn, the handles that were given on the way that was left are to be noted again: what is folded from
    /// here on may be made of them, and a fork from here does not have what was noted there.
    fn turn_away(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let is_turn = |noted: &Noted| {
            matches!(noted.note, Note::Moved(_) | Note::Forked { .. } | Note::Inherited { .. })
        };
        let turn = self.notes.iter().rposition(is_turn);
        if turn == self.turn {
            return Ok(());
        }
        self.turn = turn;
        let to: Option<Option<NodeId>> = match turn.map(|turn| &self.notes[turn].note) {
            Some(Note::Moved(moved)) => Some(moved.to.as_ref().and_then(|to| to.parse().ok())),
            // What a fork inherits lies on its way.
            _ => None,
        };
        let undone = self.undone(self.notes.len());
        let mut known = BTreeSet::new();
        for (i, noted) in self.notes.iter().enumerate() {
            let Note::Fold(fold) = &noted.note else { continue };
            // One that was undone is noted again when it is made again.
            let is_on_the_way = match to {
                Some(to) if Some(i) <= turn => leads_to(store, noted.tip, to)?,
                _ => true,
            };
            if is_on_the_way && !undone.contains(&i) {
                known.extend(fold.handles.iter().map(|(handle, ..)| handle.clone()));
            }
        }
        self.known = known;
        Ok(())
    }

    /// Takes the events of a session, after those that it inherited.
    fn take_all(&mut self, store: &dyn Store, events: &[EventRow], n_forks: usize) -> Result<(), StoreError> {
        let (before, own): (Vec<&EventRow>, Vec<&EventRow>) =
            events.iter().partition(|event| matches!(event.kind.as_str(), FORKED | INHERITED));
        // A session that went has left behind what its forks need, so what it left comes before where it was.
        let left = before.iter().find(|event| event.kind == INHERITED).or(before.first());
        if let Some(left) = left {
            self.take(store, left, n_forks)?;
        }
        if n_forks == MOST_FORKS {
            self.own_from = self.notes.len();
        }
        own.into_iter().try_for_each(|event| self.take(store, event, n_forks))
    }

    fn take(&mut self, store: &dyn Store, event: &EventRow, n_forks: usize) -> Result<(), StoreError> {
        let Some(noted) = Noted::read(event) else { return Ok(()) };
        let mut before = Past::default();
        match &noted.note {
            Note::Forked { from, n_events } if n_forks > 0 => {
                let mut events = match store.events(&SessionId(from.clone()), 0) {
                    // Who deletes a session leaves what its forks need with them, so one that is gone is not missed.
                    Err(StoreError::NoSession(_)) => Vec::new(),
                    events => events?,
                };
                events.retain(|event| event.seq < *n_events || event.kind == INHERITED);
                before.take_all(store, &events, n_forks - 1)?;
            }
            Note::Inherited { events } => {
                let rows = events.iter().enumerate().filter_map(|(i, kept)| kept.row(i as u32));
                before.take_all(store, &rows.collect::<Vec<_>>(), 0)?;
            }
            _ => {}
        }
        for earlier in before.notes {
            // What was folded on a way that this session did not go is nothing to it. What was left to it is its own.
            let is_to_check = matches!((&earlier.note, &noted.note), (Note::Fold(_), Note::Forked { .. }));
            if !is_to_check || leads_to(store, earlier.tip, event.tip)? {
                self.push(earlier);
            }
        }
        self.push(noted);
        Ok(())
    }

    fn push(&mut self, noted: Noted) {
        match &noted.note {
            Note::Fold(fold) => {
                for (handle, ..) in &fold.handles {
                    self.handles.insert(handle.clone());
                    self.known.insert(handle.clone());
                }
            }
            Note::Request(sent) => drop(self.frames.insert(sent.frame.clone())),
            Note::Began(began) => drop(self.frames.insert(began.frame.clone())),
            Note::Came { frame, overflow, .. } => {
                self.frames.insert(frame.clone());
                self.may_be_undone |= overflow;
            }
            Note::Moved(moved) => self.may_be_undone |= moved.mark.is_some(),
            Note::Beside(_) => self.n_besides += 1,
            _ => {}
        }
        self.notes.push(noted);
    }

    /// The terms that held after so many notes, by their position.
    pub(crate) fn era(&self, until: usize) -> Option<usize> {
        let undone = self.undone(until);
        let begins = |i: &usize| matches!(self.notes[*i].note, Note::Began(_)) && !undone.contains(i);
        (0..until).rev().find(begins)
    }

    /// What holds for a chain under the terms of an era: after how many messages, and which note.
    pub(crate) fn holding(&self, places: &Positions, era: usize, until: usize) -> Vec<EffectiveEvent> {
        let undone = self.undone(until);
        let mut holding: Vec<EffectiveEvent> = Vec::new();
        for (i, noted) in self.notes[..until].iter().enumerate() {
            if undone.contains(&i) {
                continue;
            }
            let is_meant = match &noted.note {
                // What a person wished holds whatever the terms.
                Note::Pinned { .. } | Note::Unpinned { .. } | Note::Focused { .. } => true,
                // So does what was written about what was said.
                Note::Summarised(_) => true,
                Note::Budget { .. }
                | Note::Refused { .. }
                | Note::Corrected { .. }
                | Note::Cooled { .. }
                | Note::FoldAsked { .. }
                | Note::Unfolded { .. } => i > era,
                // A list that only goes on with what the provider holds was not looked at.
                Note::Request(sent) => i > era && sent.from == 0,
                _ => false,
            };
            let place = noted.tip.map_or(Some(0), |tip| places.get(&tip).copied());
            let place = place.filter(|_| is_meant).map(|place| match self.is_for_next(i) {
                true => self.behind_unaware(i, place, places, until),
                false => place,
            });
            let is_due = |place: &u32| !self.is_for_next(i) || (*place as usize) < places.len();
            if let Some(place) = place.filter(is_due) {
                holding.push((place, i));
            }
        }
        // What is for the next message comes behind all requests for this one.
        holding.sort_unstable_by_key(|(place, i)| (*place, self.is_for_next(*i), *i));
        holding
    }

    /// Whether a note holds from the message on that comes next.
    fn is_for_next(&self, note: usize) -> bool {
        match &self.notes[note].note {
            Note::Corrected { at_once, .. } => !at_once,
            Note::Cooled { later } => *later,
            Note::Summarised(summary) => !summary.at_once,
            _ => false,
        }
    }

    /// After how many messages a note holds that was written while requests were under way: behind those that left
    /// without knowing of it, so that what they sent is what is made again.
    fn behind_unaware(&self, note: usize, place: u32, places: &Positions, until: usize) -> u32 {
        let seq = self.notes[note].seq;
        // Those of the session that it came from are counted anew.
        let end = if note < self.own_from { self.own_from.min(until) } else { until };
        let unaware = self.notes[note + 1..end.max(note + 1)].iter().filter_map(|noted| match &noted.note {
            Note::Request(sent) if sent.seen <= seq => places.get(&noted.tip?).copied(),
            _ => None,
        });
        unaware.max().unwrap_or(place).max(place)
    }

    /// How many notes there are before an event of its own.
    pub(crate) fn n_before(&self, seq: u32) -> usize {
        let own = &self.notes[self.own_from..];
        self.own_from + own.iter().take_while(|noted| noted.seq < seq).count()
    }

    /// For how long a model is left alone; a summary that it wrote since ends that.
    pub(crate) fn rest(&self, who: &str) -> Option<Backoff> {
        let news = self.notes.iter().rev().find_map(|noted| match &noted.note {
            Note::Rested { who: other, rest } if other == who => Some(Some(rest.clone())),
            Note::Summarised(summary) if summary.model == who => Some(None),
            _ => None,
        });
        news.flatten()
    }

    /// When the last request left.
    pub(crate) fn last_request(&self) -> Option<Millis> {
        let is_request = |noted: &&Noted| matches!(noted.note, Note::Request(_));
        self.notes.iter().rev().find(is_request).map(|noted| noted.at)
    }
}

/// Whether a message is among those that lead to another.
pub(crate) fn leads_to(
    store: &dyn Store,
    node: Option<NodeId>,
    to: Option<NodeId>,
) -> Result<bool, StoreError> {
    let (Some(node), Some(to)) = (node, to) else { return Ok(false) };
    let Some(found) = store.node(node)? else { return Ok(false) };
    let there = store.chain(to, found.depth..found.depth + 1)?;
    Ok(there.first().is_some_and(|there| there.id == node))
}

impl Past {
    /// What a session that came from another one needs when that one goes, oldest first.
    pub(crate) fn left_to(store: &dyn Store, forked: &EventRow) -> Result<Vec<Kept>, StoreError> {
        let mut past = Past::default();
        past.take(store, forked, MOST_FORKS - 1)?;
        let is_meant = |noted: &&Noted| !matches!(noted.note, Note::Forked { .. } | Note::Inherited { .. });
        Ok(past.notes.iter().filter(is_meant).map(Kept::of).collect())
    }
}

impl Kept {
    /// An event to be kept by a fork.
    fn of(noted: &Noted) -> Kept {
        let event = noted.note.event();
        Kept {
            at: noted.at.0,
            tip: noted.tip.map(|tip| tip.to_string()),
            kind: event.kind,
            body: serde_json::from_str(&event.body).unwrap_or_default(),
        }
    }

    fn row(&self, seq: u32) -> Option<EventRow> {
        let tip = self.tip.as_ref().map(|tip| tip.parse()).transpose().ok()?;
        let (kind, body) = (self.kind.clone(), self.body.to_string());
        Some(EventRow { seq, at: Millis(self.at), tip, kind, body })
    }
}
