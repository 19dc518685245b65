//! Sessions brought here: what others wrote down, and what we did ourselves.

use fanfold_store::{
    Batch, EndReason, EventRow, IdError, Millis, NewEvent, NewMessage, NewSession, NodeId, Op, Relation,
    SessionFilter, SessionId, SessionRow, SessionUpdate, StoreError,
};
use fanfold_wire::{Conversation, Format, MessageStyle, strip_style};
use serde_json::Value;

use crate::engine::{Engine, OpError};
use crate::io::duplicates::{Brought, By, Here};
use crate::io::export::{Happened, Line, Said, VERSION, raw};
use crate::log::body_frame::Skeleton;
use crate::log::message_styles::Dresses;
use crate::log::notes::{Note, Noted};
use crate::log::session_log::{FORKED, INHERITED};
use crate::request::receive::ids_of;
use crate::sessions::labels::clean_title;

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
    /// Its beginning was here, and now the rest is.
    Grown(SessionId),
}

impl Imported {
    /// The session.
    pub fn id(&self) -> &SessionId {
        let (Imported::New(id) | Imported::Known(id) | Imported::Grown(id)) = self;
        id
    }
}

impl Engine {
    /// Brings a session here that was written down by [`export_line`](Self::export_line).
    pub fn import_line(&self, line: &str) -> Result<Imported, OpError> {
        self.import_line_of(line, &mut Brought::default())
    }

    /// Brings one of the sessions of a file here. Those that it came from are found by what became of them.
    pub fn import_line_of(&self, line: &str, brought: &mut Brought) -> Result<Imported, OpError> {
        let mut line: Line = serde_json::from_str(line).map_err(|error| {
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
        let chain = ids_of(None, jsons.iter().copied());
        rename_parents(&mut line.events, brought);
        let there = SessionId(line.id.clone());
        let here = self.here(Some(&there), &chain, &|row, by| self.has_begun_so(row, by, &line.events))?;
        let imported = match &here {
            Here::All(id) => Imported::Known(id.clone()),
            Here::Nothing(id) => Imported::New(id.clone()),
            Here::Beginning(row, _) => Imported::Grown(row.id.clone()),
        };
        if !matches!(here, Here::All(_)) {
            let parent = self.parent_of(&line, brought)?;
            self.write_line(&line, &chain, here, parent)?;
        }
        brought.note(there, imported.id().clone());
        Ok(imported)
    }

    /// Whether what happened to a session is the beginning of what happened to one that is brought here.
    fn has_begun_so(&self, row: &SessionRow, by: By, events: &[Happened]) -> Result<bool, StoreError> {
        let here = self.store.events(&row.id, 0)?;
        let here: Vec<&EventRow> = here.iter().filter(|event| event.kind != INHERITED).collect();
        let there: Vec<&Happened> = events.iter().filter(|event| event.kind != INHERITED).collect();
        let is_alike = |(a, b): (&&EventRow, &&Happened)| a.kind == b.kind && a.body == b.body.get();
        let is_beginning = here.len() <= there.len() && here.iter().zip(&there).all(is_alike);
        Ok(is_beginning && (by == By::Id || !here.is_empty()))
    }

    /// Where a session of a file came from, if that is here: as it came with the file, or as one that has the message
    /// that it left from. Another session of the same id is somebody else's.
    fn parent_of(&self, line: &Line, brought: &Brought) -> Result<Option<(SessionId, Relation)>, OpError> {
        let Some((parent, relation)) = &line.parent else { return Ok(None) };
        let Some(relation) = Relation::from_name(relation) else { return Ok(None) };
        let parent = SessionId(parent.clone());
        if let Some(parent) = brought.get(&parent) {
            return Ok(Some((parent.clone(), relation)));
        }
        let forked = line.events.iter().find(|event| event.kind == FORKED);
        let left_from = forked.and_then(|event| event.tip.as_ref()?.parse().ok());
        let is_its = match left_from {
            Some(node) => self.owners_of(node)?.contains(&parent),
            None => false,
        };
        Ok(is_its.then_some((parent, relation)))
    }

    /// Writes what is not here of a session that was written down.
    fn write_line(
        &self,
        line: &Line,
        chain: &[NodeId],
        here: Here,
        parent: Option<(SessionId, Relation)>,
    ) -> Result<(), OpError> {
        let mut ops = Vec::new();
        let mut expect = Vec::new();
        let (id, n_messages, known) = match here {
            Here::All(_) => return Ok(()),
            Here::Nothing(id) => {
                let (source, format) = (line.source.clone(), line.format.clone());
                ops.push(Op::Create(NewSession { id: id.clone(), source, format, parent, tip: None }));
                (id, 0, None)
            }
            Here::Beginning(row, n) => {
                expect.push((row.id.clone(), row.tip));
                (row.id.clone(), n, Some(row))
            }
        };
        ops.extend(line.blobs.values().map(|text| Op::PutBlob(text.clone().into_bytes())));
        let message =
            |said: &Said| Some(NewMessage { json: said.json()?.to_owned(), at: Some(Millis(said.at)) });
        ops.push(Op::Append(id.clone(), line.messages.iter().skip(n_messages).filter_map(message).collect()));
        let node = |tip: &Option<String>| -> Result<Option<NodeId>, OpError> {
            tip.as_ref()
                .map(|tip| tip.parse())
                .transpose()
                .map_err(|error: IdError| OpError::wrong(error.to_string(), "export it again"))
        };
        for aside in &line.aside {
            ops.push(Op::MoveTip(id.clone(), node(&aside.after)?));
            let at = Some(Millis(aside.said.at));
            ops.push(Op::Append(id.clone(), vec![NewMessage { json: aside.said.text.clone(), at }]));
        }
        let n_events = match &known {
            Some(row) => {
                self.store.events(&row.id, 0)?.iter().filter(|event| event.kind != INHERITED).count()
            }
            None => 0,
        };
        // What it inherited came with its beginning.
        let events = line.events.iter().filter(|event| known.is_none() || event.kind != INHERITED);
        for event in events.skip(n_events) {
            ops.push(Op::MoveTip(id.clone(), node(&event.tip)?));
            let event = NewEvent { kind: event.kind.clone(), body: event.body.get().to_owned() };
            ops.push(Op::AddEvent(id.clone(), event));
        }
        ops.push(Op::MoveTip(id.clone(), chain.last().copied()));
        let has_title = known.as_ref().is_some_and(|row| row.title.is_some());
        let title = line.title.as_ref().filter(|_| !has_title);
        let title = title.map(|title| self.free_title(title)).transpose()?;
        let changes = [
            line.model.clone().map(SessionUpdate::Model),
            title.map(|title| SessionUpdate::Title(Some(title))),
            line.goal.clone().map(|goal| SessionUpdate::Goal(Some(goal))),
            line.ended.as_ref().map(|reason| SessionUpdate::End(EndReason::from_name(reason))),
        ];
        ops.extend(changes.into_iter().flatten().map(|change| Op::Update(id.clone(), change)));
        self.store.commit(&Batch { at: Millis(line.updated_at), expected_tips: expect, ops })?;
        Ok(())
    }

    /// Brings a conversation here.
    pub fn import(&self, import: Import) -> Result<Imported, OpError> {
        let (mut messages, dresses) = undressed(&import);
        let chain = ids_of(None, messages.iter().map(|message| &*message.json));
        let is_same = |row: &SessionRow, by: By| match by {
            By::Id => Ok(true),
            By::Words => self.came_from(row, &import),
        };
        let (mut ops, mut expect) = (Vec::new(), Vec::new());
        let (id, n_here) = match self.here(import.id.as_ref(), &chain, &is_same)? {
            Here::All(known) => return Ok(Imported::Known(known)),
            Here::Nothing(id) => {
                let parent = match &import.parent {
                    Some((parent, relation)) => self.store.session(parent)?.map(|row| (row.id, *relation)),
                    None => None,
                };
                let (source, format) = (import.source.clone(), import.format.clone());
                ops.push(Op::Create(NewSession { id: id.clone(), source, format, parent, tip: None }));
                (id, 0)
            }
            Here::Beginning(row, n) => {
                expect.push((row.id.clone(), row.tip));
                (row.id, n)
            }
        };
        let last = import.messages.iter().filter_map(|(_, at)| *at).max();
        let frame = match &import.body {
            Some(body) => {
                let (conversation, _) = Conversation::decode(body, None)
                    .map_err(|error| OpError::wrong(error.to_string(), error.hint()))?;
                let (frame, bytes) = Skeleton::of(body, &conversation).blob();
                ops.push(Op::PutBlob(bytes));
                Some(frame.to_string())
            }
            None => None,
        };
        ops.push(Op::Append(id.clone(), messages.split_off(n_here)));
        let note = Note::Imported { from: import.from, frame, dress: Dresses::of(&dresses) };
        ops.push(Op::AddEvent(id.clone(), note.event()));
        let title = import.title.filter(|_| n_here == 0);
        let title = match title.map(|title| clean_title(&title)).filter(|title| !title.is_empty()) {
            Some(title) => Some(self.free_title(&title)?),
            None => None,
        };
        let changes = [
            import.model.map(SessionUpdate::Model),
            title.map(|title| SessionUpdate::Title(Some(title))),
            import.ended.map(SessionUpdate::End),
        ];
        ops.extend(changes.into_iter().flatten().map(|change| Op::Update(id.clone(), change)));
        let at = last.unwrap_or_else(|| self.clock.now());
        self.store.commit(&Batch { at, expected_tips: expect, ops })?;
        Ok(if n_here == 0 { Imported::New(id) } else { Imported::Grown(id) })
    }

    /// Whether a session was brought here from the same place.
    fn came_from(&self, row: &SessionRow, import: &Import) -> Result<bool, StoreError> {
        let events = self.store.events(&row.id, 0)?;
        let note = events.first().and_then(Noted::read).map(|noted| noted.note);
        Ok(matches!(note, Some(Note::Imported { from, .. }) if from == import.from))
    }

    /// The title, or the next of its line if it is taken.
    fn free_title(&self, title: &str) -> Result<String, StoreError> {
        let filter = SessionFilter { title: Some(title.to_owned()), ..Default::default() };
        if self.store.sessions(&filter)?.is_empty() {
            Ok(title.to_owned())
        } else {
            Ok(self.next_title(title))
        }
    }
}

/// Lets the notes on where sessions came from name them as they are called here.
fn rename_parents(events: &mut [Happened], brought: &Brought) {
    for event in events.iter_mut().filter(|event| event.kind == FORKED) {
        let Ok(mut body) = serde_json::from_str::<Value>(event.body.get()) else { continue };
        let here = body["from"].as_str().and_then(|from| brought.get(&SessionId(from.to_owned())));
        if let Some(here) = here.filter(|here| body["from"] != here.0) {
            body["from"] = here.0.clone().into();
            event.body = raw(&body.to_string()).unwrap_or_default();
        }
    }
}

/// The messages of a conversation to be brought here as they are kept, and how they were dressed.
fn undressed(import: &Import) -> (Vec<NewMessage>, Vec<MessageStyle>) {
    let format: Option<Format> = import.format.parse().ok();
    let one = |(json, at): &(String, Option<Millis>)| {
        let (plain, dress) =
            format.map_or_else(|| (json.into(), MessageStyle::default()), |format| strip_style(format, json));
        (NewMessage { json: plain.into_owned(), at: *at }, dress)
    };
    import.messages.iter().map(one).unzip()
}
