//! Sessions written down whole: every message byte for byte, and all that happened.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_store::{BlobId, Node, NodeId, SessionId, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::engine::{Engine, OpError};
use crate::log::notes::Note;
use crate::log::session_log::{FORKED, Past};

/// The version of what is written.
pub(crate) const VERSION: u32 = 1;

/// A session as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    /// The version: what tells such a line from any other JSON.
    pub(crate) fanfold: u32,
    pub(crate) id: String,
    pub(crate) source: String,
    pub(crate) format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<(String, String)>,
    pub(crate) started_at: i64,
    pub(crate) updated_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<String>,
    pub(crate) messages: Vec<Said>,
    /// Messages that were left behind, each after the one before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) aside: Vec<Aside>,
    pub(crate) events: Vec<Happened>,
    pub(crate) blobs: BTreeMap<String, String>,
}

/// A message: its JSON as it came, or as a text where it would not stay on one line.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Said {
    pub(crate) at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Aside {
    pub(crate) after: Option<String>,
    #[serde(flatten)]
    pub(crate) said: AsideSaid,
}

/// A message that was left behind, always as a text: raw JSON does not go with what is flattened.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AsideSaid {
    pub(crate) at: i64,
    pub(crate) text: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Happened {
    pub(crate) at: i64,
    pub(crate) tip: Option<String>,
    pub(crate) kind: String,
    pub(crate) body: Box<RawValue>,
}

impl Engine {
    /// A session as one line of JSON, which [`import_line`](Self::import_line) reads.
    pub fn export_line(&self, session: &SessionId) -> Result<String, OpError> {
        let row = self.row(session)?;
        let nodes = match row.tip {
            Some(tip) => self.store.chain(tip, 0..u32::MAX)?,
            None => Vec::new(),
        };
        let mut events = self.store.events(session, 0)?;
        // It may go to where the session it came from is not.
        if let Some(forked) = events.iter().find(|event| event.kind == FORKED) {
            let left = Note::Inherited { events: Past::left_to(&*self.store, forked)? }.event();
            let (kind, body) = (left.kind, left.body);
            let has_one = events.iter().any(|event| event.kind == kind);
            if !has_one {
                events.push(fanfold_store::EventRow { kind, body, ..forked.clone() });
            }
        }
        let aside = self.left_behind(&nodes, events.iter().filter_map(|event| event.tip))?;
        let mut blobs = BTreeMap::new();
        for event in &events {
            self.collect_blobs(&event.body, &mut blobs)?;
        }
        let happened = |event: &fanfold_store::EventRow| Happened {
            at: event.at.0,
            tip: event.tip.map(|tip| tip.to_string()),
            kind: event.kind.clone(),
            body: raw(&event.body).unwrap_or_default(),
        };
        let line = Line {
            fanfold: VERSION,
            id: row.id.0,
            source: row.source,
            format: row.format,
            model: row.model,
            title: row.title,
            goal: row.goal,
            parent: row.parent.map(|(parent, relation)| (parent.0, relation.name().to_owned())),
            started_at: row.started_at.0,
            updated_at: row.updated_at.0,
            ended: row.ended.map(|(_, reason)| reason.name().to_owned()),
            messages: nodes.iter().map(said).collect(),
            aside,
            events: events.iter().map(happened).collect(),
            blobs,
        };
        serde_json::to_string(&line)
            .map_err(|error| StoreError::Corrupt(format!("session {session}: {error}")).into())
    }

    /// The messages that lead to some tips and not to the session's own, each after the one before it.
    fn left_behind(
        &self,
        nodes: &[Node],
        tips: impl Iterator<Item = NodeId>,
    ) -> Result<Vec<Aside>, StoreError> {
        let mut known: BTreeSet<NodeId> = nodes.iter().map(|node| node.id).collect();
        let mut aside = Vec::new();
        for tip in tips {
            if known.contains(&tip) {
                continue;
            }
            for node in self.store.chain(tip, 0..u32::MAX)? {
                if known.insert(node.id) {
                    let after = node.parent.map(|parent| parent.to_string());
                    let said = AsideSaid { at: node.at.0, text: node.json.to_string() };
                    aside.push(Aside { after, said });
                }
            }
        }
        Ok(aside)
    }

    /// The blobs that an event names.
    fn collect_blobs(&self, body: &str, blobs: &mut BTreeMap<String, String>) -> Result<(), StoreError> {
        let is_hex = |c: char| c.is_ascii_hexdigit();
        for word in body.split(|c| !is_hex(c)).filter(|word| word.len() == 64) {
            let Ok(id) = word.parse::<BlobId>() else { continue };
            if blobs.contains_key(word) {
                continue;
            }
            if let Some(text) = self.store.blob(id)?.and_then(|bytes| String::from_utf8(bytes).ok()) {
                blobs.insert(word.to_owned(), text);
            }
        }
        Ok(())
    }

    /// Whether a text is a line of ours.
    pub fn is_line(text: &str) -> bool {
        text.trim_start().starts_with("{\"fanfold\":")
    }
}

impl Said {
    pub(crate) fn json(&self) -> Option<&str> {
        self.text.as_deref().or(self.json.as_ref().map(|json| json.get()))
    }
}

fn said(node: &Node) -> Said {
    let is_one_line = !node.json.contains(['\n', '\r']);
    let json = if is_one_line { raw(&node.json) } else { None };
    let text = if json.is_some() { None } else { Some(node.json.to_string()) };
    Said { at: node.at.0, json, text }
}

pub(crate) fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok().filter(|raw| raw.get() == json)
}
