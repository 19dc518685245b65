//! Sessions that come from others: forks, rotations, and the newest of a line.

use fanfold_store::{
    Batch, EndReason, NewSession, NodeId, Op, ReadableSessions, Relation, SessionFilter, SessionId,
    SessionRow, SessionUpdate, StoreError, readable_sessions,
};

use crate::engine::{Engine, OpError};
use crate::log::notes::Note;
use crate::sessions::labels::clean_title;

/// A new session that comes from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Child {
    /// From a message on, it goes its own way.
    Fork(Option<NodeId>),
    /// So, too, and the other one ends for it.
    Branch(Option<NodeId>),
    /// It takes the other one's place.
    Rotation,
}

impl Engine {
    /// A session that goes its own way after so many messages of another; all of them if none is named.
    pub fn fork(
        &self,
        session: &SessionId,
        n_messages: Option<u32>,
        title: Option<&str>,
    ) -> Result<SessionId, OpError> {
        self.part(&self.row(session)?, n_messages, title, Child::Fork)
    }

    /// A session that goes its own way after so many messages of another, which ends for it. The goal goes with it.
    pub fn branch(
        &self,
        session: &SessionId,
        n_messages: Option<u32>,
        title: Option<&str>,
    ) -> Result<SessionId, OpError> {
        let row = self.row(session)?;
        must_go_on(&row, "branched")?;
        self.part(&row, n_messages, title, Child::Branch)
    }

    /// A session that goes its own way after so many messages of another.
    fn part(
        &self,
        row: &SessionRow,
        n_messages: Option<u32>,
        title: Option<&str>,
        child: fn(Option<NodeId>) -> Child,
    ) -> Result<SessionId, OpError> {
        let tip = self.node_at(row, n_messages.unwrap_or(row.n_messages))?;
        let title = title.map(clean_title).filter(|title| !title.is_empty());
        self.child(row, child(tip), title)
    }

    /// Ends a session. What is sent to it later takes it up again.
    pub fn end(&self, session: &SessionId, reason: EndReason) -> Result<(), OpError> {
        must_go_on(&self.row(session)?, "ended")?;
        self.write(vec![Op::Update(session.clone(), SessionUpdate::End(reason))])
    }

    /// A session that takes another's place: what was said, the goal and the next numbered title go with it, and the
    /// other one ends. It happens as a whole or not at all.
    pub fn rotate(&self, session: &SessionId) -> Result<SessionId, OpError> {
        let row = self.row(session)?;
        must_go_on(&row, "rotated")?;
        let title = row.title.as_ref().map(|title| self.next_title(title));
        self.child(&row, Child::Rotation, title)
    }

    fn child(&self, row: &SessionRow, child: Child, title: Option<String>) -> Result<SessionId, OpError> {
        let id = self.new_id();
        let (relation, tip) = match child {
            Child::Fork(tip) | Child::Branch(tip) => (Relation::Fork, tip),
            Child::Rotation => (Relation::Rotation, row.tip),
        };
        let mut ops = vec![
            Op::Create(NewSession {
                id: id.clone(),
                source: row.source.clone(),
                format: row.format.clone(),
                parent: Some((row.id.clone(), relation)),
                tip,
            }),
            // What happened before goes with it, so that its view begins with the one that the provider has seen.
            Op::AddEvent(id.clone(), Note::Forked { from: row.id.0.clone(), n_events: row.n_events }.event()),
        ];
        let mut set = |session: &SessionId, change| ops.push(Op::Update(session.clone(), change));
        if let Some(model) = &row.model {
            set(&id, SessionUpdate::Model(model.clone()));
        }
        if title.is_some() {
            set(&id, SessionUpdate::Title(title));
        }
        if let Some(goal) = &row.goal {
            set(&id, SessionUpdate::Goal(Some(goal.clone())));
        }
        let ends = match child {
            Child::Fork(_) => None,
            Child::Branch(_) => Some(EndReason::Branched),
            Child::Rotation => Some(EndReason::Compression),
        };
        if let Some(reason) = ends {
            // A goal is pursued in one place.
            if row.goal.is_some() {
                set(&row.id, SessionUpdate::Goal(None));
            }
            set(&row.id, SessionUpdate::End(reason));
        }
        let expect = vec![(row.id.clone(), row.tip)];
        self.store.commit(&Batch { at: self.clock.now(), expected_tips: expect, ops })?;
        Ok(id)
    }

    /// The next title along a line: "Task" is followed by "Task #2".
    pub fn next_title(&self, title: &str) -> String {
        let (base, _) = numbered(title);
        // A title that is taken by one that can't be read is refused when it is written.
        let rows = readable_sessions(&*self.store, &SessionFilter::default()).rows;
        let titles = rows.iter().filter_map(|row| row.title.as_deref());
        let numbers = titles.map(numbered).filter(|(other, _)| *other == base).map(|(_, number)| number);
        let next = numbers.max().unwrap_or(1) + 1;
        let end = format!(" #{next}");
        let room = 100 - end.chars().count();
        let short: String = base.chars().take(room).collect();
        format!("{}{end}", short.trim_end())
    }

    /// The session that goes on where another one was: the newest leaf of its rotations.
    pub fn newest(&self, session: &SessionId) -> Result<SessionRow, OpError> {
        let mut row = self.row(session)?;
        let line = self
            .store
            .sessions(&SessionFilter { root: Some(row.root.clone()), ..SessionFilter::default() })?;
        // Each step goes to another child, and there are only so many.
        for _ in 0..line.len() {
            let children = line.iter().filter(
                |child| matches!(&child.parent, Some((parent, Relation::Rotation)) if *parent == row.id),
            );
            // One that has not ended goes on; of several, the one that was last written to.
            let next = children.max_by_key(|child| {
                let goes_on = child.ended.as_ref().is_none_or(|(_, why)| *why == EndReason::Compression);
                (goes_on, child.updated_at, child.started_at)
            });
            // One that was gone on with after it had been rotated goes on itself.
            let is_gone_on_with = |next: &SessionRow| row.ended.is_none() && row.updated_at > next.started_at;
            match next.filter(|next| !is_gone_on_with(next)) {
                Some(next) => row = next.clone(),
                None => break,
            }
        }
        Ok(row)
    }

    /// The sessions, the last written to first; of two written to at once, the one that goes on.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        let mut rows = self.store.sessions(&SessionFilter { limit: None, ..filter.clone() })?;
        in_order(&mut rows, filter.limit);
        Ok(rows)
    }

    /// The same, without those that can't be read, and what is wrong with them.
    pub fn readable(&self, filter: &SessionFilter) -> ReadableSessions {
        let mut readable = readable_sessions(&*self.store, &SessionFilter { limit: None, ..filter.clone() });
        in_order(&mut readable.rows, filter.limit);
        readable
    }

    /// The session meant by a number of the list, an id, the beginning of one, or a title.
    pub fn find(&self, name: &str) -> Result<SessionRow, OpError> {
        if let Some(row) = self.store.session(&SessionId(name.to_owned()))? {
            return Ok(row);
        }
        // What is wrong with one does not keep the others from being found.
        let rows = self.readable(&SessionFilter::default()).rows;
        if let Some(row) = called(&rows, name) {
            return Ok(row.clone());
        }
        match beginning_with(rows, name).as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(StoreError::NoSession(SessionId(name.to_owned())).into()),
            many => Err(OpError::wrong(
                format!("{} sessions begin with {name:?}: {}", many.len(), names_of(many)),
                "give more of the id",
            )),
        }
    }

    /// The session of a name under which something is to be kept; none where nobody has the name. The beginning of
    /// an id is no name: whoever means a new session would write into another's.
    pub fn to_go_on_with(&self, name: &str) -> Result<Option<SessionRow>, OpError> {
        if let Some(row) = self.store.session(&SessionId(name.to_owned()))? {
            return Ok(Some(row));
        }
        // All must be read here: one that can't be may be the one that is meant.
        let rows = self.sessions(&SessionFilter::default())?;
        if let Some(row) = called(&rows, name) {
            return Ok(Some(row.clone()));
        }
        match beginning_with(rows, name).as_slice() {
            [] => Ok(None),
            alike => Err(OpError::wrong(
                format!("no session is called {name:?}, but this is how {} begins", names_of(alike)),
                "give the whole id to go on with it, or another name to begin a new one",
            )),
        }
    }
}

/// Puts sessions in order. A limit counts in this order, which the store does not know.
fn in_order(rows: &mut Vec<SessionRow>, limit: Option<usize>) {
    rows.sort_by_key(|row| (std::cmp::Reverse(row.updated_at), row.ended.is_some()));
    rows.truncate(limit.unwrap_or(usize::MAX));
}

/// The session of a title, or of a number in the list.
fn called<'a>(rows: &'a [SessionRow], name: &str) -> Option<&'a SessionRow> {
    // Ids begin with a date, so a short number is none.
    let number = || name.parse::<usize>().ok().filter(|_| name.len() < 5);
    let titled = rows.iter().find(|row| row.title.as_deref() == Some(name));
    titled.or_else(|| rows.get(number()?.checked_sub(1)?))
}

fn beginning_with(mut rows: Vec<SessionRow>, name: &str) -> Vec<SessionRow> {
    rows.retain(|row| row.id.0.starts_with(name));
    rows
}

/// Nothing can be done to a session that has ended which ends it.
fn must_go_on(row: &SessionRow, what: &str) -> Result<(), OpError> {
    let Some((_, reason)) = &row.ended else { return Ok(()) };
    Err(OpError::wrong(
        format!("session {} has ended ({}), so it can't be {what}", row.id, reason.name()),
        format!("`fanfold sessions resume {}` names the one that goes on", row.id),
    ))
}

/// The ids of sessions, the first of many.
fn names_of(rows: &[SessionRow]) -> String {
    const MOST_NAMED: usize = 10;
    let names: Vec<String> = rows.iter().take(MOST_NAMED).map(|row| row.id.to_string()).collect();
    let more = if rows.len() > MOST_NAMED { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// A title without its number, and the number.
fn numbered(title: &str) -> (&str, u64) {
    match title.rsplit_once(" #") {
        Some((base, number)) if !base.is_empty() => match number.parse() {
            Ok(number) if number > 0 => (base, number),
            _ => (title, 1),
        },
        _ => (title, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_numbered_from_two() {
        assert_eq!(numbered("Task"), ("Task", 1));
        assert_eq!(numbered("Task #12"), ("Task", 12));
        assert_eq!(numbered("Issue #x"), ("Issue #x", 1));
        assert_eq!(numbered(" #3"), (" #3", 1));
    }
}
