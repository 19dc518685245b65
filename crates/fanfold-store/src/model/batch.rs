//! Batches of changes, which are written atomically.

use crate::model::{Millis, NewSession, NodeId, SessionId, SessionUpdate};

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
