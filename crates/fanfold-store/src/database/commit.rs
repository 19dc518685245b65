//! A batch, written to the tables of a database.
//!
//! A session is read once for a batch and written once at its end, however many operations it has.

use std::collections::BTreeMap;

use crate::database::named_values;
use crate::database::sql::Sql;
use crate::database::tables::{self, Lane, NewRow, Position, Session};
use crate::model::{
    Batch, CommitSummary, EventRow, Millis, NewEvent, NewMessage, NewSession, NodeId, Op, SessionChange,
    SessionId, role_of,
};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// Writes a batch within the transaction that the database is in.
pub(crate) fn commit(sql: &mut dyn Sql, batch: &Batch) -> Result<CommitSummary> {
    let mut work =
        BatchWriter { sql, at: batch.at, sessions: BTreeMap::new(), committed: CommitSummary::default() };
    for (id, tip) in &batch.expected_tips {
        if work.session(id)?.row.tip != *tip {
            return Err(StoreError::Moved(id.clone()));
        }
    }
    for op in &batch.ops {
        work.apply(op)?;
    }
    for (session, is_changed) in work.sessions.values() {
        if *is_changed {
            tables::update_session(work.sql, session)?;
        }
    }
    Ok(work.committed)
}

struct BatchWriter<'a> {
    sql: &'a mut dyn Sql,
    at: Millis,
    /// The sessions of the batch, and whether they differ from what is stored.
    sessions: BTreeMap<SessionId, (Session, bool)>,
    committed: CommitSummary,
}

impl BatchWriter<'_> {
    fn session(&mut self, id: &SessionId) -> Result<&Session> {
        if !self.sessions.contains_key(id) {
            let session = tables::session_to_change(self.sql, id)?;
            let session = session.ok_or_else(|| StoreError::NoSession(id.clone()))?;
            self.sessions.insert(id.clone(), (session, false));
        }
        Ok(&self.sessions[id].0)
    }

    /// A session that is being written to.
    fn session_mut(&mut self, id: &SessionId) -> Result<&mut Session> {
        self.session(id)?;
        let (session, is_changed) = self.sessions.get_mut(id).expect("it was just read");
        *is_changed = true;
        session.row.updated_at = self.at;
        Ok(session)
    }

    fn apply(&mut self, op: &Op) -> Result<()> {
        match op {
            Op::Create(new) => self.create(new),
            Op::Append(id, messages) => self.append(id, messages),
            Op::MoveTip(id, tip) => {
                let place = tip.map(|tip| self.position(tip)).transpose()?;
                self.move_tip(id, *tip, place)
            }
            Op::AddEvent(id, event) => self.add_event(id, event),
            Op::Update(id, change) => self.update(id, change),
            Op::PutBlob(bytes) => tables::insert_blob(self.sql, bytes),
            Op::SetNamedValue(name, value) => named_values::set(self.sql, name, *value),
            Op::Delete(id) => {
                self.session(id)?;
                let (session, _) = self.sessions.remove(id).expect("it was just read");
                tables::delete_session(self.sql, &session)
            }
        }
    }

    fn position(&mut self, id: NodeId) -> Result<Position> {
        tables::position(self.sql, id)?.ok_or(StoreError::NoNode(id))
    }

    fn move_tip(&mut self, id: &SessionId, tip: Option<NodeId>, place: Option<Position>) -> Result<()> {
        let session = self.session_mut(id)?;
        session.tip_position = place;
        session.row.tip = tip;
        session.row.n_messages = place.map_or(0, |place| place.depth + 1);
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
        let place = new.tip.map(|tip| self.position(tip)).transpose()?;
        let row = new.row(root.as_ref(), place.map_or(0, |place| place.depth + 1), self.at);
        let mut session = Session { key: 0, row, tip_position: place };
        session.key = tables::insert_session(self.sql, &session)?;
        self.sessions.insert(new.id.clone(), (session, false));
        Ok(())
    }

    fn append(&mut self, id: &SessionId, messages: &[NewMessage]) -> Result<()> {
        let session = self.session(id)?;
        let (mut tip, mut place) = (session.row.tip, session.tip_position);
        let mut messages = messages.iter();
        // What is there already is walked along. Behind a new message everything is new.
        let mut first = None;
        for message in messages.by_ref() {
            let next = NodeId::new(tip, &message.json);
            let Some(found) = tables::position(self.sql, next)? else {
                first = Some(message);
                break;
            };
            (tip, place) = (Some(next), Some(found));
        }
        let new: Vec<&NewMessage> = first.into_iter().chain(messages).collect();
        if !new.is_empty() {
            (tip, place) = self.insert(&new, tip, place)?;
        }
        self.move_tip(id, tip, place)
    }

    /// Puts messages that are nowhere yet behind a place: in its lane if it is free there, else in a lane of their own.
    fn insert(
        &mut self,
        messages: &[&NewMessage],
        mut tip: Option<NodeId>,
        place: Option<Position>,
    ) -> Result<(Option<NodeId>, Option<Position>)> {
        let start = place.map_or(0, |place| place.depth + 1);
        let lane = match place {
            Some(place) if tables::node_id_at(self.sql, place.lane, start)?.is_none() => place.lane,
            _ => tables::insert_lane(self.sql, Lane { parent: place.map(|place| place.lane), start })?,
        };
        let numbers = self.sql.new_numbers(messages.len())?;
        let mut nodes = Vec::with_capacity(messages.len());
        for ((message, number), depth) in messages.iter().zip(numbers).zip(start..) {
            let id = NodeId::new(tip, &message.json);
            let (role, at) = (role_of(&message.json), message.at.unwrap_or(self.at));
            let place = Position { number, lane, depth };
            nodes.push(NewRow { id, position: place, role, at, json: &message.json });
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

    fn update(&mut self, id: &SessionId, change: &SessionChange) -> Result<()> {
        if let SessionChange::Title(Some(title)) = change
            && let Some(holder) = tables::title_holder(self.sql, title)?.filter(|holder| holder != id)
        {
            return Err(StoreError::TitleTaken { title: title.clone(), holder });
        }
        let at = self.at;
        let row = &mut self.session_mut(id)?.row;
        match change {
            SessionChange::Title(title) => {
                row.title.clone_from(title);
                // The next title of the batch is compared with what is stored.
                let session = &self.sessions[id].0;
                tables::update_session(self.sql, session)?;
            }
            SessionChange::Goal(goal) => row.goal.clone_from(goal),
            SessionChange::Model(model) => row.model = Some(model.clone()),
            SessionChange::End(reason) => {
                row.ended.get_or_insert((at, reason.clone()));
            }
            SessionChange::Reopen => row.ended = None,
        }
        Ok(())
    }
}
