//! What is written at once: all of it or nothing.

use crate::model::{EndReason, Millis, NodeId, Relation, SessionId, SessionRow};

/// A session to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Who makes it.
    pub source: String,
    /// The format of its messages.
    pub format: String,
    /// The session it comes from, and how.
    pub parent: Option<(SessionId, Relation)>,
    /// Where it begins: a message of its parent, or nowhere.
    pub tip: Option<NodeId>,
}

impl NewSession {
    /// What is known of it when it is made, from the root of the session it comes from and where it begins.
    pub(crate) fn row(&self, parents_root: Option<&SessionId>, n_messages: u32, at: Millis) -> SessionRow {
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

/// A message to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// The message as it came, byte for byte.
    pub json: String,
    /// When it was said, where that is known; else the moment of the batch.
    pub at: Option<Millis>,
}

/// An event to be noted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// What kind.
    pub kind: String,
    /// The rest, as JSON.
    pub body: String,
}

/// Something about a session that may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionChange {
    /// What people call it. No two sessions have one title.
    Title(Option<String>),
    /// What it is for.
    Goal(Option<String>),
    /// The model it is sent to.
    Model(String),
    /// It ends, unless it has ended already.
    End(EndReason),
    /// It goes on.
    Reopen,
}

/// One thing to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Makes a session.
    Create(NewSession),
    /// Puts messages behind the tip of a session.
    Append(SessionId, Vec<NewMessage>),
    /// Lets a session point at another message that the store has, or at none.
    MoveTip(SessionId, Option<NodeId>),
    /// Notes an event of a session.
    AddEvent(SessionId, NewEvent),
    /// Changes something about a session.
    Update(SessionId, SessionChange),
    /// Keeps some bytes under their hash.
    PutBlob(Vec<u8>),
    /// Remembers a number under a name, instead of what was there. It belongs to no session.
    SetNamedValue(String, i64),
    /// Forgets a session. Messages that no session leads to go with the next sweep.
    Delete(SessionId),
}

/// Things to write at once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The moment.
    pub at: Millis,
    /// Where sessions must point for the batch to be written: nobody else wrote in between.
    pub expected_tips: Vec<(SessionId, Option<NodeId>)>,
    /// What to write, in order.
    pub ops: Vec<Op>,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommitSummary {
    /// The tip of each session that the batch appended to or moved, in the order of the operations.
    pub tips: Vec<(SessionId, Option<NodeId>)>,
    /// How many messages the store did not have before.
    pub n_new_messages: usize,
}
