//! Exports a session as one line of JSON: every message byte for byte, and all events.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_store::{BlobId, Node, NodeId, SessionId, StoreError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::engine::{OpError, SessionEngine};
use crate::log::events::SessionEvent;
use crate::log::session_log::{FORKED, SessionLog};

/// The version of the export format.
pub(crate) const VERSION: u32 = 1;

/// A session as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExportLine {
    /// The version. This key marks a line as an export of fanfold.
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
    pub(crate) messages: Vec<ExportedMessage>,
    /// Messages outside the current branch, parents first.
    #[serde(default, rename = "aside", skip_serializing_if = "Vec::is_empty")]
    pub(crate) abandoned: Vec<AbandonedMessage>,
    pub(crate) events: Vec<ExportedEvent>,
    pub(crate) blobs: BTreeMap<String, String>,
}

/// A message: its JSON verbatim, or as a string if it contains line breaks.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExportedMessage {
    pub(crate) at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) json: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

/// A message that is not in the current branch, for example after a rewind.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AbandonedMessage {
    /// The id of its parent.
    pub(crate) after: Option<String>,
    #[serde(flatten)]
    pub(crate) message: AbandonedText,
}

/// The content of an abandoned message, always as a string: serde cannot flatten a struct with raw JSON.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AbandonedText {
    pub(crate) at: i64,
    pub(crate) text: String,
}

/// An event of the session, after the message `tip`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExportedEvent {
    pub(crate) at: i64,
    pub(crate) tip: Option<String>,
    pub(crate) kind: String,
    pub(crate) body: Box<RawValue>,
}

impl SessionEngine {
    /// Exports a session as one line of JSON for [`import_line`](Self::import_line).
    pub fn export_line(&self, session: &SessionId) -> Result<String, OpError> {
        let row = self.row(session)?;
        let nodes = match row.tip {
            Some(tip) => self.store.readable_chain(tip, 0..u32::MAX)?,
            None => Vec::new(),
        };
        let mut events = self.store.events(session, 0)?;
        // The importing store may lack the parent of a fork, so the parent's events are included.
        if let Some(forked) = events.iter().find(|event| event.kind == FORKED) {
            let inherited =
                SessionEvent::Inherited { events: SessionLog::inheritance(&*self.store, forked)? }.encode();
            let (kind, body) = (inherited.kind, inherited.body);
            let is_included = events.iter().any(|event| event.kind == kind);
            if !is_included {
                events.push(fanfold_store::EventRow { kind, body, ..forked.clone() });
            }
        }
        let abandoned = self.abandoned_messages(&nodes, events.iter().filter_map(|event| event.tip))?;
        let mut blobs = BTreeMap::new();
        for event in &events {
            self.collect_blobs(&event.body, &mut blobs)?;
        }
        let exported_event = |event: &fanfold_store::EventRow| ExportedEvent {
            at: event.at.0,
            tip: event.tip.map(|tip| tip.to_string()),
            kind: event.kind.clone(),
            body: raw(&event.body).unwrap_or_default(),
        };
        let line = ExportLine {
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
            messages: nodes.iter().map(exported_message).collect(),
            abandoned,
            events: events.iter().map(exported_event).collect(),
            blobs,
        };
        serde_json::to_string(&line)
            .map_err(|error| StoreError::Corrupt(format!("session {session}: {error}")).into())
    }

    /// The ancestors of these tips that are not among `nodes`, parents first.
    fn abandoned_messages(
        &self,
        nodes: &[Node],
        tips: impl Iterator<Item = NodeId>,
    ) -> Result<Vec<AbandonedMessage>, StoreError> {
        let mut known: BTreeSet<NodeId> = nodes.iter().map(|node| node.id).collect();
        let mut abandoned = Vec::new();
        for tip in tips {
            if known.contains(&tip) {
                continue;
            }
            for node in self.store.readable_chain(tip, 0..u32::MAX)? {
                if known.insert(node.id) {
                    let after = node.parent.map(|parent| parent.to_string());
                    let message = AbandonedText { at: node.at.0, text: node.json.to_string() };
                    abandoned.push(AbandonedMessage { after, message });
                }
            }
        }
        Ok(abandoned)
    }

    /// Collects the blobs that an event refers to by their hashes.
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

    /// True if a text starts with an export of fanfold.
    pub fn is_line(text: &str) -> bool {
        text.trim_start().starts_with("{\"fanfold\":")
    }
}

impl ExportedMessage {
    pub(crate) fn json(&self) -> Option<&str> {
        self.text.as_deref().or(self.json.as_ref().map(|json| json.get()))
    }
}

fn exported_message(node: &Node) -> ExportedMessage {
    let is_one_line = !node.json.contains(['\n', '\r']);
    let json = if is_one_line { raw(&node.json) } else { None };
    let text = if json.is_some() { None } else { Some(node.json.to_string()) };
    ExportedMessage { at: node.at.0, json, text }
}

/// JSON that is written verbatim; none if it is invalid or has surrounding whitespace.
pub(crate) fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok().filter(|raw| raw.get() == json)
}
