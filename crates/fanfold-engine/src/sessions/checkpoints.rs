//! Where a session points: back, forth again, and to places that were marked. Nothing is lost by going anywhere.

use fanfold_store::{Batch, NodeId, Op, Role, SessionId, SessionRow, StoreError};

use crate::engine::{Engine, OpError};
use crate::log::events::{LoggedEvent, MoveReason, SessionEvent, TipMove};
use crate::log::session_log::SessionLog;

/// A place to come back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What people call it.
    pub name: String,
    /// Whether fanfold made it by itself, before a fold.
    pub is_auto: bool,
    /// The message.
    pub tip: Option<NodeId>,
    /// How many messages lead to it.
    pub n_messages: u32,
    /// When it was made.
    pub at: fanfold_store::Millis,
}

/// Where a session was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How many messages it had.
    pub n_before: u32,
    /// How many it has.
    pub n_after: u32,
    /// How many folds no longer hold. Their handles open all the same.
    pub n_undone: usize,
}

/// How far back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    /// To before the last so many messages of the user's.
    Turns(u32),
    /// To so many messages.
    To(u32),
}

impl Engine {
    /// Marks where a session points.
    pub fn checkpoint(&self, session: &SessionId, name: &str) -> Result<(), OpError> {
        let name = crate::sessions::labels::clean_title(name);
        if name.is_empty() {
            return Err(OpError::invalid("a checkpoint without a name", "give it a name of some letters"));
        }
        self.happened(session, &SessionEvent::Checkpoint { name, auto: false, tip: None })
    }

    /// The places of a session to come back to, oldest first.
    pub fn checkpoints(&self, session: &SessionId) -> Result<Vec<Place>, OpError> {
        let past = SessionLog::read(&*self.store, session)?;
        let mut places = Vec::new();
        for LoggedEvent { at, tip, event, .. } in past.events {
            let SessionEvent::Checkpoint { name, auto, .. } = event else { continue };
            let n_messages = match tip {
                Some(tip) => match self.store.node(tip)? {
                    Some(node) => node.depth + 1,
                    None => continue,
                },
                None => 0,
            };
            places.push(Place { name, is_auto: auto, tip, n_messages, at });
        }
        Ok(places)
    }

    /// Goes to the newest checkpoint of a name. What was folded since, and for which windows, no longer holds.
    pub fn restore(&self, session: &SessionId, name: &str) -> Result<Step, OpError> {
        let places = self.checkpoints(session)?;
        let Some(place) = places.iter().rev().find(|place| place.name == name) else {
            let mut names: Vec<&str> = places.iter().map(|place| &*place.name).collect();
            names.dedup();
            let hint = match names.as_slice() {
                [] => format!("make one first: fanfold sessions checkpoint {session} NAME"),
                names => format!("there are {}", names.join(", ")),
            };
            return Err(OpError::invalid(format!("session {session} has no checkpoint {name:?}"), hint));
        };
        let row = self.row(session)?;
        let past = SessionLog::read(&*self.store, session)?;
        let (checkpoint, undone) = (Some(name.to_owned()), past.undone_events(past.events.len()));
        let mut since = past.undone_by_restore(name, past.events.len());
        since.retain(|i| !undone.contains(i));
        let is_fold = |i: &&usize| matches!(past.events[**i].event, SessionEvent::Fold(_));
        let n_undone = since.iter().filter(is_fold).count();
        let moved =
            TipMove { reason: MoveReason::Restored, from: text(row.tip), to: text(place.tip), checkpoint };
        if !since.is_empty() || row.tip != place.tip {
            self.go(&row, place.tip, moved)?;
        }
        Ok(Step { n_before: row.n_messages, n_after: place.n_messages, n_undone })
    }

    /// Goes back.
    pub fn rewind(&self, session: &SessionId, back: Back) -> Result<Step, OpError> {
        let row = self.row(session)?;
        let n_after = match back {
            Back::To(n) if n <= row.n_messages => n,
            Back::To(n) => {
                return Err(OpError::invalid(
                    format!("session {session} has {} messages, not {n}", row.n_messages),
                    "give fewer",
                ));
            }
            Back::Turns(n) => self.before_turns(&row, n)?,
        };
        let tip = self.node_at(&row, n_after)?;
        if row.tip != tip {
            let moved =
                TipMove { reason: MoveReason::Rewound, from: text(row.tip), to: text(tip), checkpoint: None };
            self.go(&row, tip, moved)?;
        }
        Ok(Step { n_before: row.n_messages, n_after, n_undone: 0 })
    }

    /// Takes the last move back, whoever made it.
    pub fn redo(&self, session: &SessionId) -> Result<Step, OpError> {
        let past = SessionLog::read(&*self.store, session)?;
        let mut moves: Vec<TipMove> = Vec::new();
        for noted in past.events {
            match noted.event {
                SessionEvent::Moved(TipMove { reason: MoveReason::Redone, .. }) => drop(moves.pop()),
                SessionEvent::Moved(moved) => moves.push(moved),
                _ => {}
            }
        }
        let Some(last) = moves.pop() else {
            return Err(OpError::invalid(
                format!("session {session} was not moved"),
                "there is something to redo after a rewind or a restore",
            ));
        };
        let to: Option<NodeId> = last.from.as_ref().and_then(|tip| tip.parse().ok());
        let n_after = match to {
            Some(tip) => self.store.node(tip)?.ok_or(StoreError::NoNode(tip))?.depth + 1,
            None => 0,
        };
        let row = self.row(session)?;
        let moved =
            TipMove { reason: MoveReason::Redone, from: text(row.tip), to: text(to), checkpoint: None };
        self.go(&row, to, moved)?;
        Ok(Step { n_before: row.n_messages, n_after, n_undone: 0 })
    }

    /// The message after which a session had so many.
    pub(crate) fn node_at(&self, row: &SessionRow, n_messages: u32) -> Result<Option<NodeId>, OpError> {
        let (Some(tip), Some(depth)) = (row.tip, n_messages.checked_sub(1)) else { return Ok(None) };
        let nodes = self.store.chain(tip, depth..n_messages)?;
        let missing = || {
            OpError::invalid(
                format!("session {} has no message {depth}", row.id),
                format!("its messages are counted from 0 to {}", row.n_messages.max(1) - 1),
            )
        };
        Ok(Some(nodes.first().ok_or_else(missing)?.id))
    }

    fn before_turns(&self, row: &SessionRow, n: u32) -> Result<u32, OpError> {
        let Some(tip) = row.tip.filter(|_| n > 0) else { return Ok(row.n_messages) };
        let mut left = n;
        // From the end in pieces, because the last turns of a long session are what is wanted.
        const PIECE: u32 = 64;
        let mut end = row.n_messages;
        while end > 0 {
            let start = end.saturating_sub(PIECE);
            for node in self.store.chain(tip, start..end)?.iter().rev() {
                if node.role == Role::User {
                    left -= 1;
                    if left == 0 {
                        return Ok(node.depth);
                    }
                }
            }
            end = start;
        }
        Err(OpError::invalid(
            format!("session {} has {} messages of the user's, not {n}", row.id, n - left),
            "go back fewer turns",
        ))
    }

    fn go(&self, row: &SessionRow, to: Option<NodeId>, moved: TipMove) -> Result<(), OpError> {
        // Noted before the move, so that what is left behind is what the note comes after, and is kept for it.
        let ops = vec![
            Op::AddEvent(row.id.clone(), SessionEvent::Moved(moved).encode()),
            Op::MoveTip(row.id.clone(), to),
        ];
        let expect = vec![(row.id.clone(), row.tip)];
        self.store.commit(&Batch { at: self.clock.now(), expected_tips: expect, ops })?;
        Ok(())
    }
}

fn text(tip: Option<NodeId>) -> Option<String> {
    tip.map(|tip| tip.to_string())
}
