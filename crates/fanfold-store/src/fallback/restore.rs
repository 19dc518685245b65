//! Writes what sessions in memory have added to the database, when that works again.
//!
//! The database is compared with memory before anything is written, so a restore that breaks off is continued, and a
//! session that another process has changed in the meantime is stored as a session of its own.

use std::collections::HashMap;

use crate::model::{
    Batch, BlobId, EventRow, Millis, NewEvent, NewMessage, NewSession, Node, NodeId, Op, SessionId,
    SessionRow, SessionUpdate,
};
use crate::store::{Store, StoreError};

use super::{FallbackStore, HeldSession};

type Result<T> = std::result::Result<T, StoreError>;

/// The named value with the time of the last outage.
const LAST_OUTAGE: &str = "last_outage";

/// The result of a restore.
#[derive(Debug, Default)]
pub struct Restored {
    /// The sessions that were stored.
    pub sessions: Vec<SessionId>,
    /// The sessions that were stored under another id, with that id, because the database has another session of
    /// their id.
    pub renamed: Vec<(SessionId, SessionId)>,
    /// The number of messages that were stored.
    pub n_messages: usize,
    /// Why the others still wait.
    pub error: Option<StoreError>,
}

impl FallbackStore {
    /// Stores what waits in memory. Returns nothing if nothing waits, or if another thread is storing it.
    pub fn restore(&self) -> Option<Restored> {
        let _restoring = self.restoring.try_lock().ok()?;
        let (since, mut waiting): (Millis, Vec<(SessionId, u64)>) = {
            let state = self.state();
            let since = state.outage.as_ref()?.since;
            (since, state.sessions.iter().map(|(id, held)| (id.clone(), held.last_commit)).collect())
        };
        // A parent was created before its children.
        waiting.sort_by_key(|(id, last_commit)| (self.started_at(id), *last_commit));
        // A session without commits needs no write, but leaves memory only if the database can be written.
        let mut restored = Restored { error: self.write_outage(since).err(), ..Restored::default() };
        for (session, _) in waiting {
            if restored.error.is_none() {
                restored.error = self.restore_session(&session, &mut restored).err();
            }
        }
        let error = restored.error.as_ref();
        let is_unreadable = error.is_some() && self.is_failing();
        let mut state = self.state();
        state.is_unreadable = is_unreadable;
        match error {
            Some(error) => state.outage.iter_mut().for_each(|outage| outage.error = error.to_string()),
            None if state.sessions.is_empty() => (state.outage, state.n_dropped) = (None, 0),
            None => {}
        }
        Some(restored)
    }

    /// Tests whether the database can be written.
    fn write_outage(&self, since: Millis) -> Result<()> {
        let ops = vec![Op::SetNamedValue(LAST_OUTAGE.to_owned(), since.0)];
        self.database()?.commit(&Batch { at: since, expected_tips: Vec::new(), ops }).map(drop)
    }

    fn started_at(&self, session: &SessionId) -> Option<Millis> {
        Some(self.memory.session(session).ok()??.started_at)
    }

    /// Stores a session, and again what is added to it in the meantime, until nothing is added.
    fn restore_session(&self, session: &SessionId, restored: &mut Restored) -> Result<()> {
        loop {
            let Some(held) = self.state().sessions.get(session).cloned() else { return Ok(()) };
            let Some(row) = self.memory.session(session)? else {
                self.release(&mut self.state(), session);
                return Ok(());
            };
            let stored_as = self.write_back(&row, &held, restored)?;
            let mut state = self.state();
            let is_unchanged =
                state.sessions.get(session).is_some_and(|now| now.last_commit == held.last_commit);
            if is_unchanged {
                self.release(&mut state, session);
                match stored_as {
                    same if same == *session => restored.sessions.push(same),
                    other => restored.renamed.push((session.clone(), other)),
                }
                return Ok(());
            }
        }
    }

    /// Writes a session to the database. Returns its id there.
    fn write_back(&self, row: &SessionRow, held: &HeldSession, restored: &mut Restored) -> Result<SessionId> {
        let database = self.database()?;
        let events = self.memory.events(&row.id, 0)?;
        let stored = database.session(&row.id)?;
        let is_same = match &stored {
            Some(stored) => continues(&*database, stored, held, &events)?,
            None => true,
        };
        let (id, stored) = match is_same {
            true => (row.id.clone(), stored),
            false => (free_id(&*database, &row.id)?, None),
        };
        let mut writer = Writer::new(self, &*database, id.clone(), row)?;
        if stored.is_none() {
            writer.create(row)?;
        }
        writer.expected = stored.as_ref().map(|stored| stored.tip);
        writer.tip = writer.expected.flatten();
        let mut blobs = held.blobs.clone();
        if stored.is_none() {
            // The database may be another one, without the blobs of earlier events.
            blobs.extend(events.iter().flat_map(|event| blobs_in(&event.body)));
        }
        for blob in blobs {
            let recent = self.state().recent.blob(blob).map(<[u8]>::to_vec);
            let bytes = recent.map_or_else(|| self.memory.blob(blob), |bytes| Ok(Some(bytes)))?;
            writer.ops.extend(bytes.map(Op::PutBlob));
        }
        let n_stored = stored.as_ref().map_or(0, |stored| stored.n_events);
        for event in events.iter().filter(|event| stored.is_none() || event.seq >= n_stored) {
            writer.add_event(event)?;
        }
        writer.finish(row, stored.as_ref())?;
        restored.n_messages += writer.n_new_messages;
        Ok(id)
    }
}

/// True if the database has the session of memory: nothing but what memory has was added to it.
fn continues(
    database: &dyn Store,
    stored: &SessionRow,
    held: &HeldSession,
    events: &[EventRow],
) -> Result<bool> {
    if stored.n_events == held.n_stored_events {
        return Ok(stored.tip == held.stored_tip);
    }
    let added = database.events(&stored.id, held.n_stored_events)?;
    let ours = events.iter().filter(|event| event.seq >= held.n_stored_events);
    let is_equal = |(a, b): (&EventRow, &EventRow)| (&a.kind, &a.body, a.tip) == (&b.kind, &b.body, b.tip);
    let n_ours = ours.clone().count();
    Ok(stored.n_events > held.n_stored_events
        && added.len() <= n_ours
        && added.iter().zip(ours).all(is_equal))
}

/// The ids of blobs that may be in a text.
fn blobs_in(text: &str) -> impl Iterator<Item = BlobId> + '_ {
    let words = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == 64);
    words.filter_map(|word| word.parse().ok())
}

/// An id like this one that no session has.
fn free_id(database: &dyn Store, id: &SessionId) -> Result<SessionId> {
    let mut n = 2u32;
    loop {
        let free = SessionId(format!("{id}-{n}"));
        if database.session(&free)?.is_none() {
            return Ok(free);
        }
        n += 1;
    }
}

/// Writes a session in batches, each with the time of its events.
struct Writer<'a> {
    memory: &'a FallbackStore,
    database: &'a dyn Store,
    id: SessionId,
    /// The current messages, and the position of each.
    nodes: Vec<Node>,
    positions: HashMap<NodeId, usize>,
    /// The tip in the database after the operations, and the tip before them if the session exists.
    tip: Option<NodeId>,
    expected: Option<Option<NodeId>>,
    at: Option<Millis>,
    ops: Vec<Op>,
    n_new_messages: usize,
}

impl<'a> Writer<'a> {
    fn new(
        memory: &'a FallbackStore,
        database: &'a dyn Store,
        id: SessionId,
        row: &SessionRow,
    ) -> Result<Writer<'a>> {
        let nodes = match row.tip {
            Some(tip) => memory.memory.chain(tip, 0..u32::MAX)?,
            None => Vec::new(),
        };
        let positions = nodes.iter().enumerate().map(|(i, node)| (node.id, i)).collect();
        Ok(Writer {
            memory,
            database,
            id,
            nodes,
            positions,
            tip: None,
            expected: None,
            at: None,
            ops: Vec::new(),
            n_new_messages: 0,
        })
    }

    fn create(&mut self, row: &SessionRow) -> Result<()> {
        let parent = match &row.parent {
            Some((parent, _)) if self.database.session(parent)?.is_none() => None,
            parent => parent.clone(),
        };
        let (source, format) = (row.source.clone(), row.format.clone());
        self.at = Some(row.started_at);
        self.ops.push(Op::Create(NewSession { id: self.id.clone(), source, format, parent, tip: None }));
        Ok(())
    }

    fn add_event(&mut self, event: &EventRow) -> Result<()> {
        self.set_time(event.at)?;
        self.move_to(event.tip)?;
        let new = NewEvent { kind: event.kind.clone(), body: event.body.clone() };
        self.ops.push(Op::AddEvent(self.id.clone(), new));
        Ok(())
    }

    /// Moves the tip to the newest message, and writes the attributes that changed.
    fn finish(&mut self, row: &SessionRow, stored: Option<&SessionRow>) -> Result<()> {
        self.set_time(row.updated_at)?;
        self.move_to(row.tip)?;
        if let Some(model) =
            row.model.clone().filter(|_| stored.is_none_or(|stored| stored.model != row.model))
        {
            self.ops.push(Op::Update(self.id.clone(), SessionUpdate::Model(model)));
        }
        self.write()
    }

    /// Appends the messages up to a tip, or moves the tip.
    fn move_to(&mut self, tip: Option<NodeId>) -> Result<()> {
        if tip == self.tip {
            return Ok(());
        }
        let position = |tip: Option<NodeId>| match tip {
            Some(tip) => self.positions.get(&tip).map(|position| position + 1),
            None => Some(0),
        };
        let new = match (position(self.tip), position(tip), tip) {
            (Some(from), Some(to), _) if from < to => messages(&self.nodes[from..to]),
            // Another branch: the messages that are stored are not stored again.
            (_, _, Some(tip)) => {
                self.ops.push(Op::MoveTip(self.id.clone(), None));
                messages(&self.memory.chain(tip, 0..u32::MAX)?)
            }
            (_, _, None) => {
                self.ops.push(Op::MoveTip(self.id.clone(), None));
                Vec::new()
            }
        };
        if !new.is_empty() {
            self.ops.push(Op::Append(self.id.clone(), new));
        }
        self.tip = tip;
        Ok(())
    }

    /// Writes the operations before those of another time.
    fn set_time(&mut self, at: Millis) -> Result<()> {
        if self.at.is_some_and(|current| current != at) {
            self.write()?;
        }
        self.at = Some(at);
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        if self.ops.is_empty() {
            return Ok(());
        }
        let expected_tips = self.expected.iter().map(|tip| (self.id.clone(), *tip)).collect();
        let ops = std::mem::take(&mut self.ops);
        let batch = Batch { at: self.at.unwrap_or_default(), expected_tips, ops };
        self.n_new_messages += self.database.commit(&batch)?.n_new_messages;
        self.expected = Some(self.tip);
        Ok(())
    }
}

fn messages(nodes: &[Node]) -> Vec<NewMessage> {
    nodes.iter().map(|node| NewMessage { json: node.json.to_string(), at: Some(node.at) }).collect()
}
