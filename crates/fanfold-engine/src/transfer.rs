//! Sessions written down whole, and brought here: every message byte for byte, and all that happened.

use std::collections::{BTreeMap, BTreeSet};

use fanfold_store::{
    Batch, BlobId, Change, EndReason, Millis, NewEvent, NewMessage, NewSession, Node, NodeId, Op, Relation,
    SessionId, StoreError,
};
use fanfold_wire::{Conversation, Dress, Format, undress};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::arrive::ids_of;
use crate::dresses::Dresses;
use crate::engine::{Engine, OpError};
use crate::note::Note;
use crate::past::Past;
use crate::skeleton::Skeleton;
use crate::wishes::clean_title;

/// The version of what is written here.
const VERSION: u32 = 1;

/// A session as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    /// The version: what tells such a line from any other JSON.
    fanfold: u32,
    id: String,
    source: String,
    format: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    goal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<(String, String)>,
    started_at: i64,
    updated_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    messages: Vec<Said>,
    /// Messages that were left behind, each after the one before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    aside: Vec<Aside>,
    events: Vec<Happened>,
    blobs: BTreeMap<String, String>,
}

/// A message: its JSON as it came, or as a text where it would not stay on one line.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Aside {
    after: Option<String>,
    #[serde(flatten)]
    said: AsideSaid,
}

/// A message that was left behind, always as a text: raw JSON does not go with what is flattened.
#[derive(Debug, Serialize, Deserialize)]
struct AsideSaid {
    at: i64,
    text: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Happened {
    at: i64,
    tip: Option<String>,
    kind: String,
    body: Box<RawValue>,
}

/// A conversation to be brought here.
#[derive(Debug, Clone, Default)]
pub struct Import {
    /// Its id; a new one if none is given or somebody else has it.
    pub id: Option<SessionId>,
    /// Who made it.
    pub source: String,
    /// The format of its messages.
    pub format: String,
    /// Its messages, and when they were said where that is known.
    pub messages: Vec<(String, Option<Millis>)>,
    /// The body that they came in, if they did.
    pub body: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What people called it.
    pub title: Option<String>,
    /// The session it came from, and how, where that one is here.
    pub parent: Option<(SessionId, Relation)>,
    /// Why it ended.
    pub ended: Option<EndReason>,
    /// What it is read from, for its first event.
    pub from: String,
}

/// What became of a conversation that was brought here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Imported {
    /// It is a new session.
    New(SessionId),
    /// It is here already.
    Known(SessionId),
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
        if let Some(forked) = events.iter().find(|event| event.kind == "forked") {
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
            .map_err(|error| StoreError::Broken(format!("session {session}: {error}")).into())
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

    /// Brings a session here that was written down by [`export_line`](Self::export_line).
    pub fn import_line(&self, line: &str) -> Result<Imported, OpError> {
        let line: Line = serde_json::from_str(line).map_err(|error| {
            OpError::wrong(format!("this is no session of fanfold's: {error}"), "export it again")
        })?;
        if line.fanfold > VERSION {
            let what = format!("this was written in version {}, and {VERSION} is known", line.fanfold);
            return Err(OpError::wrong(what, "use the newer fanfold"));
        }
        let jsons: Vec<&str> = line.messages.iter().filter_map(Said::json).collect();
        if jsons.len() != line.messages.len() {
            return Err(OpError::wrong("a message has neither `json` nor `text`", "export it again"));
        }
        let tip = ids_of(None, jsons.iter().copied()).last().copied();
        let id = match self.free_id(Some(&SessionId(line.id.clone())), tip)? {
            Ok(id) => id,
            Err(known) => return Ok(Imported::Known(known)),
        };
        let parent = match &line.parent {
            Some((parent, relation)) => {
                let parent = SessionId(parent.clone());
                let relation = Relation::named(relation);
                self.store.session(&parent)?.and(relation).map(|relation| (parent, relation))
            }
            None => None,
        };
        let new = NewSession { id: id.clone(), source: line.source, format: line.format, parent, tip: None };
        let mut ops = vec![Op::Create(new)];
        ops.extend(line.blobs.into_values().map(|text| Op::Keep(text.into_bytes())));
        let times = line.messages.iter().map(|said| Some(Millis(said.at)));
        let messages = jsons.iter().zip(times).map(|(json, at)| NewMessage { json: (*json).to_owned(), at });
        ops.push(Op::Append(id.clone(), messages.collect()));
        let node = |tip: &Option<String>| -> Result<Option<NodeId>, OpError> {
            tip.as_ref()
                .map(|tip| tip.parse())
                .transpose()
                .map_err(|error: fanfold_store::IdError| OpError::wrong(error.to_string(), "export it again"))
        };
        for aside in line.aside {
            ops.push(Op::Move(id.clone(), node(&aside.after)?));
            let at = Some(Millis(aside.said.at));
            ops.push(Op::Append(id.clone(), vec![NewMessage { json: aside.said.text, at }]));
        }
        for event in line.events {
            ops.push(Op::Move(id.clone(), node(&event.tip)?));
            let event = NewEvent { kind: event.kind, body: event.body.get().to_owned() };
            ops.push(Op::Note(id.clone(), event));
        }
        ops.push(Op::Move(id.clone(), tip));
        let title = line.title.map(|title| self.free_title(&title)).transpose()?;
        let changes = [
            line.model.map(Change::Model),
            title.map(|title| Change::Title(Some(title))),
            line.goal.map(|goal| Change::Goal(Some(goal))),
            line.ended.map(|reason| Change::Ended(EndReason::named(&reason))),
        ];
        ops.extend(changes.into_iter().flatten().map(|change| Op::Set(id.clone(), change)));
        self.store.commit(&Batch { at: Millis(line.updated_at), expect: Vec::new(), ops })?;
        Ok(Imported::New(id))
    }

    /// Brings a conversation here.
    pub fn import(&self, import: Import) -> Result<Imported, OpError> {
        let (messages, dresses) = undressed(&import);
        let tip = ids_of(None, messages.iter().map(|message| &*message.json)).last().copied();
        let id = match self.free_id(import.id.as_ref(), tip)? {
            Ok(id) => id,
            Err(known) => return Ok(Imported::Known(known)),
        };
        let parent = match import.parent {
            Some((parent, relation)) => self.store.session(&parent)?.map(|row| (row.id, relation)),
            None => None,
        };
        let last = import.messages.iter().filter_map(|(_, at)| *at).max();
        let new =
            NewSession { id: id.clone(), source: import.source, format: import.format, parent, tip: None };
        let mut ops = vec![Op::Create(new)];
        let frame = match &import.body {
            Some(body) => {
                let (conversation, _) = Conversation::decode(body, None)
                    .map_err(|error| OpError::wrong(error.to_string(), error.hint()))?;
                let (frame, bytes) = Skeleton::of(body, &conversation).blob();
                ops.push(Op::Keep(bytes));
                Some(frame.to_string())
            }
            None => None,
        };
        ops.push(Op::Append(id.clone(), messages));
        let note = Note::Imported { from: import.from, frame, dress: Dresses::of(&dresses) };
        ops.push(Op::Note(id.clone(), note.event()));
        let title = match import.title.map(|title| clean_title(&title)).filter(|title| !title.is_empty()) {
            Some(title) => Some(self.free_title(&title)?),
            None => None,
        };
        let changes = [
            import.model.map(Change::Model),
            title.map(|title| Change::Title(Some(title))),
            import.ended.map(Change::Ended),
        ];
        ops.extend(changes.into_iter().flatten().map(|change| Op::Set(id.clone(), change)));
        let at = last.unwrap_or_else(|| self.clock.now());
        self.store.commit(&Batch { at, expect: Vec::new(), ops })?;
        Ok(Imported::New(id))
    }

    /// An id for a session that ends with a message, or the session that is here already and does.
    fn free_id(
        &self,
        wanted: Option<&SessionId>,
        tip: Option<NodeId>,
    ) -> Result<Result<SessionId, SessionId>, StoreError> {
        if let Some(wanted) = wanted {
            match self.store.session(wanted)? {
                None => return Ok(Ok(wanted.clone())),
                Some(row) if row.tip == tip => return Ok(Err(wanted.clone())),
                Some(_) => return Ok(Ok(self.new_id())),
            }
        }
        if let Some(tip) = tip.filter(|tip| matches!(self.store.node(*tip), Ok(Some(_)))) {
            for owner in self.store.owners(tip)? {
                if self.store.session(&owner)?.is_some_and(|row| row.tip == Some(tip)) {
                    return Ok(Err(owner));
                }
            }
        }
        Ok(Ok(self.new_id()))
    }

    /// The title, or the next of its line if it is taken.
    fn free_title(&self, title: &str) -> Result<String, StoreError> {
        let filter = fanfold_store::Filter { title: Some(title.to_owned()), ..Default::default() };
        if self.store.sessions(&filter)?.is_empty() { Ok(title.to_owned()) } else { self.next_title(title) }
    }
}

/// The messages of a conversation to be brought here as they are kept, and how they were dressed.
fn undressed(import: &Import) -> (Vec<NewMessage>, Vec<Dress>) {
    let format: Option<Format> = import.format.parse().ok();
    let one = |(json, at): &(String, Option<Millis>)| {
        let (plain, dress) =
            format.map_or_else(|| (json.into(), Dress::default()), |format| undress(format, json));
        (NewMessage { json: plain.into_owned(), at: *at }, dress)
    };
    import.messages.iter().map(one).unzip()
}

impl Said {
    fn json(&self) -> Option<&str> {
        self.text.as_deref().or(self.json.as_ref().map(|json| json.get()))
    }
}

fn said(node: &Node) -> Said {
    let is_one_line = !node.json.contains(['\n', '\r']);
    let json = if is_one_line { raw(&node.json) } else { None };
    let text = if json.is_some() { None } else { Some(node.json.to_string()) };
    Said { at: node.at.0, json, text }
}

fn raw(json: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(json.to_owned()).ok().filter(|raw| raw.get() == json)
}
