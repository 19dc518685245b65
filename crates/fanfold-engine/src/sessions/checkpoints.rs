//! Moves the tip of a session: rewind, redo, and restoring checkpoints. Abandoned messages stay in the store.

use fanfold_store::{Batch, NodeId, Op, Role, SessionId, SessionRow, StoreError};

use crate::engine::{OpError, SessionEngine};
use crate::log::events::{LoggedEvent, MoveReason, SessionEvent, TipMove};
use crate::log::session_log::SessionLog;
use crate::sessions::labels::clean_title;

/// A named position in a session that can be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Its name.
    pub name: String,
    /// True if it was made automatically before a fold.
    pub is_auto: bool,
    /// The last message.
    pub tip: Option<NodeId>,
    /// The number of messages up to it.
    pub n_messages: u32,
    /// When it was made.
    pub at: fanfold_store::Millis,
}

/// The effect of a rewind, redo or restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveOutcome {
    /// The number of messages before the move.
    pub n_before: u32,
    /// The number of messages after the move.
    pub n_after: u32,
    /// The number of folds that a restore undid; 0 for a rewind and a redo. Their handles can still be recalled.
    pub n_undone: usize,
}

/// The target of a rewind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindTarget {
    /// Before the last n user messages.
    TurnsBack(u32),
    /// To the first n messages.
    Length(u32),
}

impl SessionEngine {
    /// Sets a checkpoint at the tip of a session.
    pub fn checkpoint(&self, session: &SessionId, name: &str) -> Result<(), OpError> {
        let name = clean_title(name);
        if name.is_empty() {
            return Err(OpError::invalid(
                "the checkpoint has no name",
                "give it a name with a visible character",
            ));
        }
        self.record_note(session, &SessionEvent::Checkpoint { name, auto: false, tip: None })
    }

    /// The checkpoints of a session, oldest first.
    pub fn checkpoints(&self, session: &SessionId) -> Result<Vec<Checkpoint>, OpError> {
        let past = SessionLog::read(&*self.store, session)?;
        let mut checkpoints = Vec::new();
        for LoggedEvent { at, tip, event, .. } in past.events {
            let SessionEvent::Checkpoint { name, auto, .. } = event else { continue };
            let n_messages = match tip {
                Some(tip) => match self.store.node(tip)? {
                    Some(node) => node.depth + 1,
                    None => continue,
                },
                None => 0,
            };
            checkpoints.push(Checkpoint { name, is_auto: auto, tip, n_messages, at });
        }
        Ok(checkpoints)
    }

    /// Restores the newest checkpoint with a name. Later folds and changes of the window are undone.
    pub fn restore(&self, session: &SessionId, name: &str) -> Result<MoveOutcome, OpError> {
        // Checkpoints are stored under cleaned names.
        let name = &*clean_title(name);
        let checkpoints = self.checkpoints(session)?;
        let Some(checkpoint) = checkpoints.iter().rev().find(|checkpoint| checkpoint.name == name) else {
            let mut names: Vec<&str> = checkpoints.iter().map(|checkpoint| &*checkpoint.name).collect();
            names.sort_unstable();
            names.dedup();
            let hint = match names.as_slice() {
                [] => format!("make one first: fanfold sessions checkpoint {session} NAME"),
                names => format!("its checkpoints are {}", names.join(", ")),
            };
            return Err(OpError::invalid(format!("session {session} has no checkpoint {name:?}"), hint));
        };
        let row = self.row(session)?;
        let past = SessionLog::read(&*self.store, session)?;
        let undone = past.undone_events(past.events.len());
        let mut since = past.undone_by_restore(name, past.events.len());
        since.retain(|i| !undone.contains(i));
        let is_fold = |i: &&usize| matches!(past.events[**i].event, SessionEvent::Fold(_));
        let n_undone = since.iter().filter(is_fold).count();
        let moved = TipMove {
            reason: MoveReason::Restored,
            from: to_text(row.tip),
            to: to_text(checkpoint.tip),
            checkpoint: Some(name.to_owned()),
        };
        if !since.is_empty() || row.tip != checkpoint.tip {
            self.move_tip(&row, checkpoint.tip, moved)?;
        }
        Ok(MoveOutcome { n_before: row.n_messages, n_after: checkpoint.n_messages, n_undone })
    }

    /// Rewinds a session.
    pub fn rewind(&self, session: &SessionId, target: RewindTarget) -> Result<MoveOutcome, OpError> {
        let row = self.row(session)?;
        let n_after = match target {
            RewindTarget::Length(n) if n <= row.n_messages => n,
            RewindTarget::Length(n) => {
                return Err(OpError::invalid(
                    format!("session {session} has {} messages, not {n}", row.n_messages),
                    format!("give at most {}", row.n_messages),
                ));
            }
            RewindTarget::TurnsBack(n) => self.length_before_turns(&row, n)?,
        };
        let tip = self.node_at(&row, n_after)?;
        if row.tip != tip {
            let moved = TipMove {
                reason: MoveReason::Rewound,
                from: to_text(row.tip),
                to: to_text(tip),
                checkpoint: None,
            };
            self.move_tip(&row, tip, moved)?;
        }
        Ok(MoveOutcome { n_before: row.n_messages, n_after, n_undone: 0 })
    }

    /// Undoes the last rewind, restore or edit by the client that is not undone yet.
    pub fn redo(&self, session: &SessionId) -> Result<MoveOutcome, OpError> {
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
                format!("session {session} has no rewind, restore or edit to undo"),
                "`redo` undoes the last rewind or restore, or the last edit of the history by a client",
            ));
        };
        let to: Option<NodeId> = last.from.as_ref().and_then(|tip| tip.parse().ok());
        let n_after = match to {
            Some(tip) => self.store.node(tip)?.ok_or(StoreError::NoNode(tip))?.depth + 1,
            None => 0,
        };
        let row = self.row(session)?;
        let moved =
            TipMove { reason: MoveReason::Redone, from: to_text(row.tip), to: to_text(to), checkpoint: None };
        self.move_tip(&row, to, moved)?;
        Ok(MoveOutcome { n_before: row.n_messages, n_after, n_undone: 0 })
    }

    /// The last of the first `n_messages` messages of a session.
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

    /// The number of messages before the last `n` user messages.
    fn length_before_turns(&self, row: &SessionRow, n: u32) -> Result<u32, OpError> {
        if n == 0 {
            return Ok(row.n_messages);
        }
        let Some(tip) = row.tip else {
            return Err(OpError::invalid(
                format!("session {} is empty, so it has no turns to go back", row.id),
                "`fanfold sessions list` shows the sessions with messages",
            ));
        };
        let mut left = n;
        // Read backwards in pages: a rewind usually goes back a few turns of a long session.
        const PAGE_SIZE: u32 = 64;
        let mut end = row.n_messages;
        while end > 0 {
            let start = end.saturating_sub(PAGE_SIZE);
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
            format!("session {} has {} user messages, not {n}", row.id, n - left),
            "go back fewer turns",
        ))
    }

    fn move_tip(&self, row: &SessionRow, to: Option<NodeId>, moved: TipMove) -> Result<(), OpError> {
        // The event precedes the move, so that it refers to the old tip and keeps the abandoned messages from being
        // collected as garbage.
        let ops = vec![
            Op::AddEvent(row.id.clone(), SessionEvent::Moved(moved).encode()),
            Op::MoveTip(row.id.clone(), to),
        ];
        let expected_tips = vec![(row.id.clone(), row.tip)];
        self.store.commit(&Batch { at: self.clock.now(), expected_tips, ops })?;
        Ok(())
    }
}

fn to_text(tip: Option<NodeId>) -> Option<String> {
    tip.map(|tip| tip.to_string())
}
