//! Batches of changes, which are written atomically.

use crate::model::{EndReason, Millis, NodeId, Relation, SessionId, SessionRow};

/// A session to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// The program that creates it: `cli`, `proxy`, `claude-code`, `subagent`.
    pub source: String,
    /// The wire format of its messages.
    pub format: String,
    /// The parent session and the relation to it.
    pub parent: Option<(SessionId, Relation)>,
    /// The message after which it continues, usually one of its parent; `None` for an empty session.
    pub tip: Option<NodeId>,
}

impl NewSession {
    /// Returns the row of the created session. A rotation inherits the root of its parent.
    pub(crate) fn to_row(&self, parents_root: Option<&SessionId>, n_messages: u32, at: Millis) -> SessionRow {
        let is_rotation = matches!(self.parent, Some((_, Relation::Rotation)));
        SessionRow {
            id: self.id.clone(),
            source: self.source.clone(),
            format: self.format.clone(),
            model: None,
            title: None,
            goal: None,
            parent: self.parent.clone(),
            root: parents_root.filter(|_| is_rotation).unwrap_or(&self.id).clone(),
            tip: self.tip,
            n_messages,
            n_events: 0,
            started_at: at,
            updated_at: at,
            ended: None,
        }
    }
}

/// A message to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The message as received, byte for byte.
    pub json: String,
    /// The time of the message; the time of the batch if unknown.
    pub at: Option<Millis>,
}

/// An event to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// The kind of event, see [`EventRow::kind`](crate::EventRow::kind).
    pub kind: String,
    /// The data of the event as JSON.
    pub body: String,
}

/// A change to one attribute of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionUpdate {
    /// Sets or removes the title. Titles are unique in a store.
    Title(Option<String>),
    /// Sets or removes the goal.
    Goal(Option<String>),
    /// Sets the model that the session is sent to.
    Model(String),
    /// Ends the session, unless it has already ended.
    End(EndReason),
    /// Removes the end.
    Reopen,
}

/// One operation of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Creates a session.
    Create(NewSession),
    /// Appends messages after the tip of a session.
    Append(SessionId, Vec<NewMessage>),
    /// Moves the tip of a session to another stored message, or to none.
    MoveTip(SessionId, Option<NodeId>),
    /// Records an event of a session.
    AddEvent(SessionId, NewEvent),
    /// Changes an attribute of a session.
    Update(SessionId, SessionUpdate),
    /// Stores bytes under their hash.
    PutBlob(Vec<u8>),
    /// Sets an integer under a name, outside of any session.
    SetNamedValue(String, i64),
    /// Deletes a session. The next garbage collection deletes its messages, unless something else refers to them.
    Delete(SessionId),
}

/// Operations that are applied completely or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The time of the batch.
    pub at: Millis,
    /// The tips that sessions must have for the batch to be applied, so that no concurrent write is overlooked.
    pub expected_tips: Vec<(SessionId, Option<NodeId>)>,
    /// The operations in order.
    pub ops: Vec<Op>,
}

/// The result of a committed batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitSummary {
    /// The tip of each session that the batch appended to or moved, in the order of the operations.
    pub tips: Vec<(SessionId, Option<NodeId>)>,
    /// The number of messages that the store did not have before.
    pub n_new_messages: usize,
}
