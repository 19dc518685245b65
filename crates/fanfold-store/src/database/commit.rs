//! Writes a batch to the tables of a database.
//!
//! Each session of a batch is read once and written once at the end, regardless of the number of operations.

use std::collections::BTreeMap;

use crate::database::named_values;
use crate::database::sql::Sql;
use crate::database::tables::{self, Lane, NewMessageRow, Position, StoredSession};
use crate::model::{
    Batch, CommitSummary, EventRow, Millis, NewEvent, NewMessage, NewSession, NodeId, Op, Role, SessionId,
    SessionUpdate,
};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// Writes a batch within the current transaction.
pub(crate) fn commit(sql: &mut dyn Sql, batch: &Batch) -> Result<CommitSummary> {
    let mut writer =
        BatchWriter { sql, at: batch.at, sessions: BTreeMap::new(), committed: CommitSummary::default() };
    for (id, tip) in &batch.expected_tips {
        if writer.session(id)?.row.tip != *tip {
            return Err(StoreError::Conflict(id.clone()));
        }
    }
    for op in &batch.ops {
        writer.apply(op)?;
    }
    for (session, is_changed) in writer.sessions.values() {
        if *is_changed {
            tables::update_session(writer.sql, session)?;
        }
    }
    Ok(writer.committed)
}

struct BatchWriter<'a> {
    sql: &'a mut dyn Sql,
    at: Millis,
    /// The sessions of the batch, and whether they have unwritten changes.
    sessions: BTreeMap<SessionId, (StoredSession, bool)>,
    committed: CommitSummary,
}

impl BatchWriter<'_> {
    fn session(&mut self, id: &SessionId) -> Result<&StoredSession> {
        if !self.sessions.contains_key(id) {
            let session = tables::session_for_update(self.sql, id)?;
            let session = session.ok_or_else(|| StoreError::NoSession(id.clone()))?;
            self.sessions.insert(id.clone(), (session, false));
        }
        Ok(&self.sessions[id].0)
    }

    /// Returns a session to change, and marks it as changed.
    fn session_mut(&mut self, id: &SessionId) -> Result<&mut StoredSession> {
        self.session(id)?;
        let (session, is_changed) = self.sessions.get_mut(id).expect("the session was just read");
        *is_changed = true;
        session.row.updated_at = self.at;
        Ok(session)
    }

    fn apply(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Create(new) => self.create(new),
            Op::Append(id, messages) => self.append(id, messages),
            Op::MoveTip(id, tip) => {
                let position = tip.map(|tip| self.position(tip)).transpose()?;
                self.move_tip(id, *tip, position)
            }
            Op::AddEvent(id, event) => self.add_event(id, event),
            Op::Update(id, change) => self.update(id, change),
            Op::PutBlob(bytes) => tables::insert_blob(self.sql, bytes),
            Op::SetNamedValue(name, value) => named_values::set(self.sql, name, *value),
            Op::Delete(id) => {
                self.session(id)?;
                let (session, _) = self.sessions.remove(id).expect("the session was just read");
                tables::delete_session(self.sql, &session)
            }
        }
    }

    fn position(&mut self, id: NodeId) -> Result<Position> {
        tables::position(self.sql, id)?.ok_or(StoreError::NoNode(id))
    }

    fn move_tip(&mut self, id: &SessionId, tip: Option<NodeId>, position: Option<Position>) -> Result<()> {
        let session = self.session_mut(id)?;
        session.tip_position = position;
        session.row.tip = tip;
        session.row.n_messages = position.map_or(0, |position| position.depth + 1);
        self.committed.tips.push((id.clone(), tip));
        Ok(())
    }

    fn create(&mut self, new: &NewSession) -> Result<()> {
        match self.session(&new.id) {
            Ok(_) => return Err(StoreError::SessionExists(new.id.clone())),
            Err(StoreError::NoSession(_)) => {}
            Err(error) => return Err(error),
        }
        let root = match &new.parent {
            Some((parent, _)) => Some(self.session(parent)?.row.root.clone()),
            None => None,
        };
        let position = new.tip.map(|tip| self.position(tip)).transpose()?;
        let row = new.to_row(root.as_ref(), position.map_or(0, |position| position.depth + 1), self.at);
        let mut session = StoredSession { key: 0, row, tip_position: position };
        session.key = tables::insert_session(self.sql, &session)?;
        self.sessions.insert(new.id.clone(), (session, false));
        Ok(())
    }

    fn append(&mut self, id: &SessionId, messages: &[NewMessage]) -> Result<()> {
        let session = self.session(id)?;
        let (mut tip, mut position) = (session.row.tip, session.tip_position);
        let mut messages = messages.iter();
        // Skip messages that are already stored. After the first new message, all are new: ids include predecessors.
        let mut first = None;
        for message in messages.by_ref() {
            let next = NodeId::new(tip, &message.json);
            let Some(found) = tables::position(self.sql, next)? else {
                first = Some(message);
                break;
            };
            (tip, position) = (Some(next), Some(found));
        }
        let new: Vec<&NewMessage> = first.into_iter().chain(messages).collect();
        if !new.is_empty() {
            (tip, position) = self.insert(&new, tip, position)?;
        }
        self.move_tip(id, tip, position)
    }

    /// Inserts new messages after a position: into its lane if nothing follows there, otherwise into a new lane.
    fn insert(
        &mut self,
        messages: &[&NewMessage],
        mut tip: Option<NodeId>,
        position: Option<Position>,
    ) -> Result<(Option<NodeId>, Option<Position>)> {
        let start = position.map_or(0, |position| position.depth + 1);
        let lane = match position {
            Some(position) if tables::node_id_at(self.sql, position.lane, start)?.is_none() => position.lane,
            _ => {
                tables::insert_lane(self.sql, Lane { parent: position.map(|position| position.lane), start })?
            }
        };
        let numbers = self.sql.new_numbers(messages.len())?;
        let mut nodes = Vec::with_capacity(messages.len());
        for ((message, number), depth) in messages.iter().zip(numbers).zip(start..) {
            let id = NodeId::new(tip, &message.json);
            let (role, at) = (Role::from_message(&message.json), message.at.unwrap_or(self.at));
            let position = Position { number, lane, depth };
            nodes.push(NewMessageRow { id, position, role, at, json: &message.json });
            tip = Some(id);
        }
        tables::insert_nodes(self.sql, &nodes)?;
        self.committed.n_new_messages += nodes.len();
        Ok((tip, nodes.last().map(|node| node.position)))
    }

    fn add_event(&mut self, id: &SessionId, event: &NewEvent) -> Result<()> {
        let at = self.at;
        let session = self.session_mut(id)?;
        let seq = session.row.n_events;
        session.row.n_events += 1;
        let (tip, kind, body) = (session.row.tip, event.kind.clone(), event.body.clone());
        let session = &self.sessions[id].0;
        tables::insert_event(self.sql, session, &EventRow { seq, at, tip, kind, body })
    }

    fn update(&mut self, id: &SessionId, change: &SessionUpdate) -> Result<()> {
        if let SessionUpdate::Title(Some(title)) = change
            && let Some(holder) = tables::title_holder(self.sql, title)?.filter(|holder| holder != id)
        {
            return Err(StoreError::TitleTaken { title: title.clone(), holder });
        }
        let at = self.at;
        self.session_mut(id)?.row.apply(change, at);
        if let SessionUpdate::Title(_) = change {
            // Written now, because the uniqueness check of the batch's next title reads the table.
            tables::update_session(self.sql, &self.sessions[id].0)?;
        }
        Ok(())
    }
}
