//! Who points at which message, where they come from, and what happened to them.

use std::fmt;

use crate::chain::NodeId;

/// A moment, in milliseconds since 1970. It comes in as a value: no store looks at a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub i64);

/// Names a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a session came from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It goes on with the same task: the other one ended for it. Both are one lineage.
    Rotation,
    /// It goes its own way from a message on. It is a lineage of its own.
    Fork,
    /// It works for the other one. It is a lineage of its own.
    Subagent,
}

impl Relation {
    /// Its name in a store.
    pub fn name(self) -> &'static str {
        match self {
            Relation::Rotation => "rotation",
            Relation::Fork => "fork",
            Relation::Subagent => "subagent",
        }
    }

    /// The relation of that name.
    pub fn named(name: &str) -> Option<Relation> {
        [Relation::Rotation, Relation::Fork, Relation::Subagent]
            .into_iter()
            .find(|relation| relation.name() == name)
    }
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// It was rotated: a child goes on.
    Compression,
    /// The user went on in a fork.
    Branched,
    /// It worked for another one and is done.
    Subagent,
    /// The user began anew.
    Reset,
    /// Something else.
    Other(String),
}

impl EndReason {
    /// Its name in a store.
    pub fn name(&self) -> &str {
        match self {
            EndReason::Compression => "compression",
            EndReason::Branched => "branched",
            EndReason::Subagent => "subagent",
            EndReason::Reset => "reset",
            EndReason::Other(reason) => reason,
        }
    }

    /// The reason of that name.
    pub fn named(name: &str) -> EndReason {
        match name {
            "compression" => EndReason::Compression,
            "branched" => EndReason::Branched,
            "subagent" => EndReason::Subagent,
            "reset" => EndReason::Reset,
            other => EndReason::Other(other.to_owned()),
        }
    }
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id, for life.
    pub id: SessionId,
    /// Who made it: `cli`, `proxy`, `claude-code`, `subagent`.
    pub source: String,
    /// The format of its messages.
    pub format: String,
    /// The model it was last sent to.
    pub model: Option<String>,
    /// What people call it.
    pub title: Option<String>,
    /// What it is for; travels along the lineage.
    pub goal: Option<String>,
    /// The session it came from, and how.
    pub parent: Option<(SessionId, Relation)>,
    /// The first session of its lineage: itself, unless it came by rotation.
    pub root: SessionId,
    /// Its newest message.
    pub tip: Option<NodeId>,
    /// How many messages lead to the tip.
    pub n_messages: u32,
    /// How many events it has.
    pub n_events: u32,
    /// When it was made.
    pub started_at: Millis,
    /// When something was last written to it.
    pub updated_at: Millis,
    /// When and why it ended. The first reason stays.
    pub ended: Option<(Millis, EndReason)>,
}

/// Something that happened to a session, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its position among the events of its session, from 0.
    pub seq: u32,
    /// When.
    pub at: Millis,
    /// The tip of the session at that moment.
    pub tip: Option<NodeId>,
    /// What kind: `fold`, `request`, `pinned`, `checkpoint`, `rewound`. The engine gives them their meaning.
    pub kind: String,
    /// The rest, as JSON.
    pub body: String,
}
