//! The log of a session, and the events of it that are in force for a list of messages.
//!
//! A fork continues the log of its parent session up to the fork, so that its view begins with bytes that the
//! provider has cached. An event is in force for every list that has the message before the event: a rewind cancels
//! it, and a redo brings it back.

use std::collections::{BTreeSet, HashMap};

use fanfold_store::{EventRow, Millis, NodeId, SessionId, Store, StoreError};

use crate::log::backoff::Backoff;
use crate::log::events::{InheritedEvent, LoggedEvent, SessionEvent};

/// The position of each message in a conversation, counted from 1.
pub(crate) type Positions = HashMap<NodeId, u32>;

/// An event that is in force: the number of messages before it, and its index in the log.
pub(crate) type EffectiveEvent = (u32, usize);

/// The kind of the event that names the parent session of a fork.
pub(crate) const FORKED: &str = "forked";
/// The kind of the event with the log of a deleted parent session.
pub(crate) const INHERITED: &str = "inherited";

/// Maximum number of nested forks.
const MAX_FORK_DEPTH: usize = 1000;

/// The events of a session, oldest first, beginning with the inherited ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionLog {
    pub(crate) events: Vec<LoggedEvent>,
    /// The number of events that were read from the session itself.
    pub(crate) n_read: u32,
    /// The number of inherited events, which are the first ones.
    pub(crate) n_inherited: usize,
    /// The handles of all folds.
    pub(crate) handles: BTreeSet<String>,
    /// The handles of folds on the path to the session's tip. A fork from there inherits no others.
    pub(crate) recorded_handles: BTreeSet<String>,
    /// The index of the move after which `recorded_handles` was computed.
    pub(crate) last_move: Option<usize>,
    /// The stored body frames.
    pub(crate) frames: BTreeSet<String>,
    pub(crate) n_hidden_recalls: usize,
    /// True if any event may be undone.
    pub(crate) may_have_undone: bool,
}

impl SessionLog {
    /// Reads the log of a session.
    pub(crate) fn read(store: &dyn Store, session: &SessionId) -> Result<SessionLog, StoreError> {
        let mut log = SessionLog::default();
        log.read_new(store, session)?;
        Ok(log)
    }

    /// Reads the events that were added since the last read.
    pub(crate) fn read_new(&mut self, store: &dyn Store, session: &SessionId) -> Result<(), StoreError> {
        let rows = store.events(session, self.n_read)?;
        let is_first = self.n_read == 0;
        self.n_read = rows.last().map_or(self.n_read, |last| last.seq + 1);
        if is_first {
            self.add_all(store, &rows, MAX_FORK_DEPTH)?;
        } else {
            // The first read has the parent's log, so a copy of it that was added since is skipped.
            rows.iter().filter(|row| row.kind != INHERITED).try_for_each(|row| self.add(store, row, 0))?;
        }
        self.update_recorded_handles(store)
    }

    /// After a move, removes the handles that were recorded on the branch that was left. They are recorded again when
    /// they are used, because a fork of the new branch does not inherit events of the other branch.
    fn update_recorded_handles(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let is_move = |logged: &LoggedEvent| {
            matches!(
                logged.event,
                SessionEvent::Moved(_) | SessionEvent::Forked { .. } | SessionEvent::Inherited { .. }
            )
        };
        let last_move = self.events.iter().rposition(is_move);
        if last_move == self.last_move {
            return Ok(());
        }
        self.last_move = last_move;
        let target: Option<Option<NodeId>> = match last_move.map(|i| &self.events[i].event) {
            Some(SessionEvent::Moved(moved)) => Some(moved.to.as_ref().and_then(|to| to.parse().ok())),
            // All events that a fork inherits are on its own path.
            _ => None,
        };
        let undone = self.undone_events(self.events.len());
        let mut recorded = BTreeSet::new();
        for (i, logged) in self.events.iter().enumerate() {
            let SessionEvent::Fold(fold) = &logged.event else { continue };
            let is_on_path = match target {
                Some(target) if Some(i) <= last_move => is_ancestor(store, logged.tip, target)?,
                _ => true,
            };
            // An undone fold is recorded again when it is repeated.
            if is_on_path && !undone.contains(&i) {
                recorded.extend(fold.handles.iter().map(|(handle, ..)| handle.clone()));
            }
        }
        self.recorded_handles = recorded;
        Ok(())
    }

    /// The messages that folds on the path to a message have left out or shortened, counted from 0.
    pub(crate) fn folded_messages(
        &self,
        store: &dyn Store,
        tip: Option<NodeId>,
    ) -> Result<BTreeSet<u32>, StoreError> {
        let undone = self.undone_events(self.events.len());
        let mut folded = BTreeSet::new();
        for (i, logged) in self.events.iter().enumerate() {
            let SessionEvent::Fold(fold) = &logged.event else { continue };
            if !undone.contains(&i) && is_ancestor(store, logged.tip, tip)? {
                folded.extend(fold.folded.iter().flat_map(|(first, last)| *first..=*last));
            }
        }
        Ok(folded)
    }

    /// Adds the events of a session after the events that it inherited.
    fn add_all(&mut self, store: &dyn Store, rows: &[EventRow], fork_depth: usize) -> Result<(), StoreError> {
        let (origins, own): (Vec<&EventRow>, Vec<&EventRow>) =
            rows.iter().partition(|row| matches!(row.kind.as_str(), FORKED | INHERITED));
        // The copy of a deleted parent's log replaces the reference to the parent.
        let origin = origins.iter().find(|row| row.kind == INHERITED).or(origins.first());
        if let Some(origin) = origin {
            self.add(store, origin, fork_depth)?;
        }
        if fork_depth == MAX_FORK_DEPTH {
            self.n_inherited = self.events.len();
        }
        own.into_iter().try_for_each(|row| self.add(store, row, fork_depth))
    }

    /// Adds an event. The events that a fork inherits are added before its `Forked` or `Inherited` event.
    fn add(&mut self, store: &dyn Store, row: &EventRow, fork_depth: usize) -> Result<(), StoreError> {
        let Some(logged) = LoggedEvent::decode(row) else { return Ok(()) };
        let mut inherited = SessionLog::default();
        match &logged.event {
            SessionEvent::Forked { from, n_events } if fork_depth > 0 => {
                let mut rows = match store.events(&SessionId(from.clone()), 0) {
                    // Forks of a deleted session have a copy of its log if they need it.
                    Err(StoreError::NoSession(_)) => Vec::new(),
                    rows => rows?,
                };
                rows.retain(|row| row.seq < *n_events || row.kind == INHERITED);
                inherited.add_all(store, &rows, fork_depth - 1)?;
            }
            SessionEvent::Inherited { events } => {
                let rows = events.iter().enumerate().filter_map(|(i, event)| event.to_row(i as u32));
                inherited.add_all(store, &rows.collect::<Vec<_>>(), 0)?;
            }
            _ => {}
        }
        for earlier in inherited.events {
            // Folds on other branches of the parent are skipped. A copied log has none.
            let may_be_elsewhere = matches!(
                (&earlier.event, &logged.event),
                (SessionEvent::Fold(_), SessionEvent::Forked { .. })
            );
            if !may_be_elsewhere || is_ancestor(store, earlier.tip, row.tip)? {
                self.push(earlier);
            }
        }
        self.push(logged);
        Ok(())
    }

    fn push(&mut self, logged: LoggedEvent) {
        match &logged.event {
            SessionEvent::Fold(fold) => {
                for (handle, ..) in &fold.handles {
                    self.handles.insert(handle.clone());
                    self.recorded_handles.insert(handle.clone());
                }
            }
            SessionEvent::Request(sent) => drop(self.frames.insert(sent.frame.clone())),
            SessionEvent::NewTerms(terms) => drop(self.frames.insert(terms.frame.clone())),
            SessionEvent::SentUnchanged { frame, overflow, .. } => {
                self.frames.insert(frame.clone());
                self.may_have_undone |= overflow;
            }
            SessionEvent::Moved(moved) => self.may_have_undone |= moved.checkpoint.is_some(),
            SessionEvent::HiddenRecalls(_) => self.n_hidden_recalls += 1,
            _ => {}
        }
        self.events.push(logged);
    }

    /// The index of the newest terms in force among the first `n_events` events.
    pub(crate) fn terms_event(&self, n_events: usize) -> Option<usize> {
        let undone = self.undone_events(n_events);
        let is_terms =
            |i: &usize| matches!(self.events[*i].event, SessionEvent::NewTerms(_)) && !undone.contains(i);
        (0..n_events).rev().find(is_terms)
    }

    /// The events among the first `n_events` that are in force for a list of messages, sorted by the position after
    /// which they apply. `terms_event` is the index of the terms that the list is folded by.
    pub(crate) fn effective_events(
        &self,
        positions: &Positions,
        terms_event: usize,
        n_events: usize,
    ) -> Vec<EffectiveEvent> {
        let undone = self.undone_events(n_events);
        let mut effective: Vec<EffectiveEvent> = Vec::new();
        for (i, logged) in self.events[..n_events].iter().enumerate() {
            let is_in_force = match &logged.event {
                // Independent of the terms.
                SessionEvent::Pinned { .. }
                | SessionEvent::Unpinned { .. }
                | SessionEvent::Focused { .. }
                | SessionEvent::Summarised(_) => true,
                SessionEvent::Budget { .. }
                | SessionEvent::Refused { .. }
                | SessionEvent::TokenRatio { .. }
                | SessionEvent::CacheExpired { .. }
                | SessionEvent::FoldRequested { .. }
                | SessionEvent::Unfolded { .. } => i > terms_event,
                // A request without its first messages was sent without building a view.
                SessionEvent::Request(sent) => i > terms_event && sent.from == 0,
                _ => false,
            };
            if undone.contains(&i) || !is_in_force {
                continue;
            }
            let position = logged.tip.map_or(Some(0), |tip| positions.get(&tip).copied());
            let Some(position) = position else { continue };
            if !self.is_deferred(i) {
                effective.push((position, i));
                continue;
            }
            let position = self.deferred_position(i, position, positions, n_events);
            if (position as usize) < positions.len() {
                effective.push((position, i));
            }
        }
        // A deferred event applies after all requests with the same messages.
        effective.sort_unstable_by_key(|(position, i)| (*position, self.is_deferred(*i), *i));
        effective
    }

    /// Returns true if an event applies from the next message on.
    fn is_deferred(&self, event: usize) -> bool {
        match &self.events[event].event {
            SessionEvent::TokenRatio { at_once, .. } => !at_once,
            SessionEvent::CacheExpired { later } => *later,
            SessionEvent::Summarised(summary) => !summary.at_once,
            _ => false,
        }
    }

    /// The position after which a deferred event applies: after the requests whose views were built before it was
    /// recorded, so that they can be rebuilt with the same bytes.
    fn deferred_position(&self, event: usize, position: u32, positions: &Positions, n_events: usize) -> u32 {
        let seq = self.events[event].seq;
        // Inherited events have the sequence numbers of another session.
        let end = if event < self.n_inherited { self.n_inherited.min(n_events) } else { n_events };
        let later = &self.events[event + 1..end.max(event + 1)];
        let built_before = later.iter().filter_map(|logged| match &logged.event {
            SessionEvent::Request(sent) if sent.n_seen_events <= seq => positions.get(&logged.tip?).copied(),
            _ => None,
        });
        built_before.max().unwrap_or(position).max(position)
    }

    /// The number of events in the log before the session's own event `seq`.
    pub(crate) fn n_events_before(&self, seq: u32) -> usize {
        let own = &self.events[self.n_inherited..];
        self.n_inherited + own.iter().take_while(|logged| logged.seq < seq).count()
    }

    /// The current pause of a summary model; a summary that it wrote since ends the pause.
    pub(crate) fn model_pause(&self, name: &str) -> Option<Backoff> {
        let newest = self.events.iter().rev().find_map(|logged| match &logged.event {
            SessionEvent::ModelPaused { model, rest } if model == name => Some(Some(rest.clone())),
            SessionEvent::Summarised(summary) if summary.model == name => Some(None),
            _ => None,
        });
        newest.flatten()
    }

    /// The time of the last request.
    pub(crate) fn last_request(&self) -> Option<Millis> {
        let is_request = |logged: &&LoggedEvent| matches!(logged.event, SessionEvent::Request(_));
        self.events.iter().rev().find(is_request).map(|logged| logged.at)
    }
}

/// Returns true if `node` is the message `tip` or comes before it.
pub(crate) fn is_ancestor(
    store: &dyn Store,
    node: Option<NodeId>,
    tip: Option<NodeId>,
) -> Result<bool, StoreError> {
    let (Some(node), Some(tip)) = (node, tip) else { return Ok(false) };
    let Some(found) = store.node(node)? else { return Ok(false) };
    let same_depth = store.chain(tip, found.depth..found.depth + 1)?;
    Ok(same_depth.first().is_some_and(|other| other.id == node))
}

impl SessionLog {
    /// The events that a fork has to keep when its parent session is deleted, oldest first. `forked` is the event
    /// that names the parent.
    pub(crate) fn inheritance(
        store: &dyn Store,
        forked: &EventRow,
    ) -> Result<Vec<InheritedEvent>, StoreError> {
        let mut log = SessionLog::default();
        log.add(store, forked, MAX_FORK_DEPTH - 1)?;
        let is_copied = |logged: &&LoggedEvent| {
            !matches!(logged.event, SessionEvent::Forked { .. } | SessionEvent::Inherited { .. })
        };
        Ok(log.events.iter().filter(is_copied).map(InheritedEvent::new).collect())
    }
}

impl InheritedEvent {
    pub(crate) fn new(logged: &LoggedEvent) -> InheritedEvent {
        let event = logged.event.encode();
        InheritedEvent {
            at: logged.at.0,
            tip: logged.tip.map(|tip| tip.to_string()),
            kind: event.kind,
            body: serde_json::from_str(&event.body).unwrap_or_default(),
        }
    }

    fn to_row(&self, seq: u32) -> Option<EventRow> {
        let tip = self.tip.as_ref().map(|tip| tip.parse()).transpose().ok()?;
        let (kind, body) = (self.kind.clone(), self.body.to_string());
        Some(EventRow { seq, at: Millis(self.at), tip, kind, body })
    }
}
