//! Imports sessions: exports of fanfold, and conversations of other programs.

use fanfold_store::{
    Batch, BlobId, EndReason, EventRow, IdError, Millis, NewEvent, NewMessage, NewSession, NodeId, Op,
    Relation, SessionFilter, SessionId, SessionRow, SessionUpdate, StoreError,
};
use fanfold_wire::{Conversation, Format, MessageStyle, strip_style};
use serde_json::Value;

use crate::engine::{OpError, SessionEngine};
use crate::io::duplicates::{ImportedIds, MatchKind, StoredPart};
use crate::io::export::{AbandonedMessage, ExportLine, ExportedEvent, ExportedMessage, VERSION, raw};
use crate::log::body_frame::BodyFrame;
use crate::log::events::{LoggedEvent, SessionEvent};
use crate::log::message_styles::MessageStyles;
use crate::log::session_log::{FORKED, INHERITED};
use crate::request::receive::ids_of;
use crate::sessions::labels::clean_title;

/// A conversation to import.
#[derive(Debug, Clone, Default)]
pub struct Import {
    /// Its id. If it is missing or taken, the session gets a new id.
    pub id: Option<SessionId>,
    /// The program that recorded it.
    pub source: String,
    /// The format of its messages.
    pub format: String,
    /// Its messages, with their times if known.
    pub messages: Vec<(String, Option<Millis>)>,
    /// The request body that contained the messages, if there was one.
    pub body: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// Its parent and the relation to it, if the parent is stored here.
    pub parent: Option<(SessionId, Relation)>,
    /// Why it ended.
    pub ended: Option<EndReason>,
    /// A description of where it was read from. It is recorded in the first event.
    pub from: String,
}

/// The outcome of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// A new session was stored.
    New(SessionId),
    /// All messages were stored already.
    Unchanged(SessionId),
    /// Its first messages were stored already, and the rest was added.
    Extended(SessionId),
}

impl ImportOutcome {
    /// The session.
    pub fn id(&self) -> &SessionId {
        let (ImportOutcome::New(id) | ImportOutcome::Unchanged(id) | ImportOutcome::Extended(id)) = self;
        id
    }
}

impl SessionEngine {
    /// Imports a session exported by [`export_line`](Self::export_line).
    pub fn import_line(&self, line: &str) -> Result<ImportOutcome, OpError> {
        self.import_line_with(line, &mut ImportedIds::default())
    }

    /// Imports a session of a file with several. `imported` has the ids of the sessions imported before it, so that
    /// a fork finds its parent.
    pub fn import_line_with(&self, line: &str, imported: &mut ImportedIds) -> Result<ImportOutcome, OpError> {
        let mut line: ExportLine = serde_json::from_str(line).map_err(|error| {
            OpError::invalid(format!("the line is not an exported session: {error}"), "export it again")
        })?;
        if line.fanfold > VERSION {
            let what =
                format!("the export has format version {}; the newest known is {VERSION}", line.fanfold);
            return Err(OpError::invalid(what, "update fanfold"));
        }
        let jsons: Vec<&str> = line.messages.iter().filter_map(ExportedMessage::json).collect();
        if jsons.len() != line.messages.len() {
            return Err(OpError::invalid(
                "an exported message has neither `json` nor `text`",
                "export it again",
            ));
        }
        let chain = ids_of(None, jsons.iter().copied());
        rename_parents(&mut line.events, imported);
        let foreign_id = SessionId(line.id.clone());
        let is_same = |row: &SessionRow, kind: MatchKind| self.has_first_events(row, kind, &line.events);
        let stored = self.find_stored_part(Some(&foreign_id), &chain, &is_same)?;
        let outcome = match &stored {
            StoredPart::All(id) => ImportOutcome::Unchanged(id.clone()),
            StoredPart::Nothing(id) => ImportOutcome::New(id.clone()),
            StoredPart::Beginning(row, _) => ImportOutcome::Extended(row.id.clone()),
        };
        if !matches!(stored, StoredPart::All(_)) {
            let parent = self.parent_of(&line, imported)?;
            self.write_line(&line, &chain, stored, parent)?;
        }
        imported.insert(foreign_id, outcome.id().clone());
        Ok(outcome)
    }

    /// True if the events of a stored session are the first events of an exported one.
    fn has_first_events(
        &self,
        row: &SessionRow,
        kind: MatchKind,
        events: &[ExportedEvent],
    ) -> Result<bool, StoreError> {
        let stored = self.store.events(&row.id, 0)?;
        let stored: Vec<&EventRow> = stored.iter().filter(|event| event.kind != INHERITED).collect();
        let exported: Vec<&ExportedEvent> = events.iter().filter(|event| event.kind != INHERITED).collect();
        let is_equal = |(a, b): (&&EventRow, &&ExportedEvent)| a.kind == b.kind && a.body == b.body.get();
        let is_beginning = stored.len() <= exported.len() && stored.iter().zip(&exported).all(is_equal);
        // Equal messages without any event do not identify a session.
        Ok(is_beginning && (kind == MatchKind::Id || !stored.is_empty()))
    }

    /// The parent of an exported fork: a session imported from the same file, or a stored session with the parent's
    /// id that contains the message at which the fork began.
    fn parent_of(
        &self,
        line: &ExportLine,
        imported: &ImportedIds,
    ) -> Result<Option<(SessionId, Relation)>, OpError> {
        let Some((parent, relation)) = &line.parent else { return Ok(None) };
        let Some(relation) = Relation::from_name(relation) else { return Ok(None) };
        let parent = SessionId(parent.clone());
        if let Some(parent) = imported.get(&parent) {
            return Ok(Some((parent.clone(), relation)));
        }
        let forked = line.events.iter().find(|event| event.kind == FORKED);
        let fork_point = forked.and_then(|event| event.tip.as_ref()?.parse().ok());
        let is_parent = match fork_point {
            Some(node) => self.owners_of(node)?.contains(&parent),
            None => false,
        };
        Ok(is_parent.then_some((parent, relation)))
    }

    /// Writes the part of an exported session that is not stored yet.
    fn write_line(
        &self,
        line: &ExportLine,
        chain: &[NodeId],
        stored: StoredPart,
        parent: Option<(SessionId, Relation)>,
    ) -> Result<(), OpError> {
        let mut ops = Vec::new();
        let (id, n_messages, existing) = match stored {
            StoredPart::All(_) => return Ok(()),
            StoredPart::Nothing(id) => {
                let (source, format) = (line.source.clone(), line.format.clone());
                ops.push(Op::Create(NewSession { id: id.clone(), source, format, parent, tip: None }));
                (id, 0, None)
            }
            StoredPart::Beginning(row, n) => (row.id.clone(), n, Some(row)),
        };
        let event_ops = self.event_ops(line, &id, existing.is_some())?;
        ops.extend(blob_ops(line, &event_ops));
        ops.extend(message_ops(line, &id, n_messages)?);
        ops.extend(event_ops);
        ops.push(Op::MoveTip(id.clone(), chain.last().copied()));
        let has_title = existing.as_ref().is_some_and(|row| row.title.is_some());
        let title = line.title.as_ref().filter(|_| !has_title);
        let title = title.map(|title| self.free_title(title)).transpose()?;
        let changes = [
            line.model.clone().map(SessionUpdate::Model),
            title.map(|title| SessionUpdate::Title(Some(title))),
            line.goal.clone().map(|goal| SessionUpdate::Goal(Some(goal))),
            line.ended.as_ref().map(|reason| SessionUpdate::End(EndReason::from_name(reason))),
        ];
        ops.extend(changes.into_iter().flatten().map(|change| Op::Update(id.clone(), change)));
        let expected_tips = existing.into_iter().map(|row| (row.id, row.tip)).collect();
        self.store.commit(&Batch { at: Millis(line.updated_at), expected_tips, ops })?;
        Ok(())
    }

    /// Adds the events of an exported session that are not stored yet, each after its message.
    fn event_ops(&self, line: &ExportLine, id: &SessionId, is_stored: bool) -> Result<Vec<Op>, OpError> {
        let n_stored = match is_stored {
            true => self.store.events(id, 0)?.iter().filter(|event| event.kind != INHERITED).count(),
            false => 0,
        };
        // A stored session has its inherited events already.
        let events = line.events.iter().filter(|event| !is_stored || event.kind != INHERITED);
        let mut ops = Vec::new();
        for event in events.skip(n_stored) {
            ops.push(Op::MoveTip(id.clone(), parse_tip(event.tip.as_deref())?));
            let event = NewEvent { kind: event.kind.clone(), body: event.body.get().to_owned() };
            ops.push(Op::AddEvent(id.clone(), event));
        }
        Ok(ops)
    }

    /// Imports a conversation of another program.
    pub fn import(&self, import: Import) -> Result<ImportOutcome, OpError> {
        let (mut messages, styles) = without_styles(&import);
        let chain = ids_of(None, messages.iter().map(|message| &*message.json));
        let is_same = |row: &SessionRow, kind: MatchKind| match kind {
            MatchKind::Id => Ok(true),
            MatchKind::Content => self.is_from_same_place(row, &import),
        };
        let (mut ops, mut expected_tips) = (Vec::new(), Vec::new());
        let (id, n_stored) = match self.find_stored_part(import.id.as_ref(), &chain, &is_same)? {
            StoredPart::All(id) => return Ok(ImportOutcome::Unchanged(id)),
            StoredPart::Nothing(id) => {
                let parent = match &import.parent {
                    Some((parent, relation)) => self.store.session(parent)?.map(|row| (row.id, *relation)),
                    None => None,
                };
                let (source, format) = (import.source.clone(), import.format.clone());
                ops.push(Op::Create(NewSession { id: id.clone(), source, format, parent, tip: None }));
                (id, 0)
            }
            StoredPart::Beginning(row, n) => {
                expected_tips.push((row.id.clone(), row.tip));
                (row.id, n)
            }
        };
        let last_time = import.messages.iter().filter_map(|(_, at)| *at).max();
        let frame = match &import.body {
            Some(body) => {
                let (conversation, _) = Conversation::decode(body, None)
                    .map_err(|error| OpError::invalid(error.to_string(), error.hint()))?;
                let (frame, bytes) = BodyFrame::new(body, &conversation).blob();
                ops.push(Op::PutBlob(bytes));
                Some(frame.to_string())
            }
            None => None,
        };
        ops.push(Op::Append(id.clone(), messages.split_off(n_stored)));
        let note = SessionEvent::Imported { from: import.from, frame, styles: MessageStyles::new(&styles) };
        ops.push(Op::AddEvent(id.clone(), note.encode()));
        let title = import.title.filter(|_| n_stored == 0);
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
        let at = last_time.unwrap_or_else(|| self.clock.now());
        self.store.commit(&Batch { at, expected_tips, ops })?;
        Ok(if n_stored == 0 { ImportOutcome::New(id) } else { ImportOutcome::Extended(id) })
    }

    /// True if a stored session was imported from the same file.
    fn is_from_same_place(&self, row: &SessionRow, import: &Import) -> Result<bool, StoreError> {
        let events = self.store.events(&row.id, 0)?;
        let note = events.first().and_then(LoggedEvent::decode).map(|noted| noted.event);
        Ok(matches!(note, Some(SessionEvent::Imported { from, .. }) if from == import.from))
    }

    /// The title, with the next number if it is taken.
    fn free_title(&self, title: &str) -> Result<String, StoreError> {
        let filter = SessionFilter { title: Some(title.to_owned()), ..Default::default() };
        if self.store.sessions(&filter)?.is_empty() {
            Ok(title.to_owned())
        } else {
            Ok(self.next_title(title))
        }
    }
}

/// Adds the messages of an exported session after the first `n_stored`, and its abandoned messages.
fn message_ops(line: &ExportLine, id: &SessionId, n_stored: usize) -> Result<Vec<Op>, OpError> {
    let message = |message: &ExportedMessage| {
        Some(NewMessage { json: message.json()?.to_owned(), at: Some(Millis(message.at)) })
    };
    let new = line.messages.iter().skip(n_stored).filter_map(message).collect();
    let mut ops = vec![Op::Append(id.clone(), new)];
    for AbandonedMessage { after, message } in &line.abandoned {
        ops.push(Op::MoveTip(id.clone(), parse_tip(after.as_deref())?));
        let at = Some(Millis(message.at));
        ops.push(Op::Append(id.clone(), vec![NewMessage { json: message.text.clone(), at }]));
    }
    Ok(ops)
}

/// Adds the blobs that the added events refer to. Nothing would ever read or delete others.
fn blob_ops(line: &ExportLine, event_ops: &[Op]) -> Vec<Op> {
    let bodies: Vec<&str> = event_ops
        .iter()
        .filter_map(|op| if let Op::AddEvent(_, event) = op { Some(event.body.as_str()) } else { None })
        .collect();
    let is_needed = |text: &&String| {
        let id = BlobId::new(text.as_bytes()).to_string();
        bodies.iter().any(|body| body.contains(&id))
    };
    line.blobs.values().filter(is_needed).map(|text| Op::PutBlob(text.clone().into_bytes())).collect()
}

fn parse_tip(tip: Option<&str>) -> Result<Option<NodeId>, OpError> {
    let parsed = tip.map(str::parse).transpose();
    parsed.map_err(|error: IdError| OpError::invalid(error.to_string(), "export it again"))
}

/// Replaces the parents' ids in fork events by their ids in this store.
fn rename_parents(events: &mut [ExportedEvent], imported: &ImportedIds) {
    for event in events.iter_mut().filter(|event| event.kind == FORKED) {
        let Ok(mut body) = serde_json::from_str::<Value>(event.body.get()) else { continue };
        let parent = body["from"].as_str().and_then(|from| imported.get(&SessionId(from.to_owned())));
        if let Some(parent) = parent.filter(|parent| body["from"] != parent.0) {
            body["from"] = parent.0.clone().into();
            event.body = raw(&body.to_string()).unwrap_or_default();
        }
    }
}

/// The messages of an import as they are stored, and the styles that were stripped from them.
fn without_styles(import: &Import) -> (Vec<NewMessage>, Vec<MessageStyle>) {
    let format: Option<Format> = import.format.parse().ok();
    let strip = |(json, at): &(String, Option<Millis>)| {
        let (plain, style) =
            format.map_or_else(|| (json.into(), MessageStyle::default()), |format| strip_style(format, json));
        (NewMessage { json: plain.into_owned(), at: *at }, style)
    };
    import.messages.iter().map(strip).unzip()
}
