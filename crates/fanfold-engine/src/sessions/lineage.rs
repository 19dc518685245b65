//! Forks and rotations of sessions, and the lookup of sessions by name.

use fanfold_store::{
    Batch, EndReason, NewSession, NodeId, Op, ReadableSessions, Relation, SessionFilter, SessionId,
    SessionRow, SessionUpdate, StoreError, readable_sessions,
};

use crate::engine::{OpError, SessionEngine};
use crate::log::events::SessionEvent;
use crate::sessions::labels::{MAX_TITLE_CHARS, clean_title};

/// How a session is derived from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Derivation {
    /// It starts at this message, and the parent stays open.
    Fork(Option<NodeId>),
    /// It starts at this message, and the parent ends.
    Branch(Option<NodeId>),
    /// It replaces the parent, which ends.
    Rotation,
}

impl SessionEngine {
    /// Creates a fork with the first `n_messages` messages of a session, or with all of them.
    pub fn fork(
        &self,
        session: &SessionId,
        n_messages: Option<u32>,
        title: Option<&str>,
    ) -> Result<SessionId, OpError> {
        self.fork_with(&self.row(session)?, n_messages, title, Derivation::Fork)
    }

    /// Creates a fork and ends the original session. The goal moves to the fork.
    pub fn branch(
        &self,
        session: &SessionId,
        n_messages: Option<u32>,
        title: Option<&str>,
    ) -> Result<SessionId, OpError> {
        let row = self.row(session)?;
        ensure_open(&row, "branched")?;
        self.fork_with(&row, n_messages, title, Derivation::Branch)
    }

    fn fork_with(
        &self,
        row: &SessionRow,
        n_messages: Option<u32>,
        title: Option<&str>,
        derivation: fn(Option<NodeId>) -> Derivation,
    ) -> Result<SessionId, OpError> {
        let tip = self.node_at(row, n_messages.unwrap_or(row.n_messages))?;
        let title = title.map(clean_title).filter(|title| !title.is_empty());
        self.create_child(row, derivation(tip), title)
    }

    /// Ends a session. A later request reopens it.
    pub fn end(&self, session: &SessionId, reason: EndReason) -> Result<(), OpError> {
        ensure_open(&self.row(session)?, "ended")?;
        self.write(vec![Op::Update(session.clone(), SessionUpdate::End(reason))])
    }

    /// Creates a session that replaces another one, in one transaction. It gets the messages, the goal and the next
    /// numbered title, and the other session ends.
    pub fn rotate(&self, session: &SessionId) -> Result<SessionId, OpError> {
        let row = self.row(session)?;
        ensure_open(&row, "rotated")?;
        let title = row.title.as_ref().map(|title| self.next_title(title));
        self.create_child(&row, Derivation::Rotation, title)
    }

    fn create_child(
        &self,
        row: &SessionRow,
        derivation: Derivation,
        title: Option<String>,
    ) -> Result<SessionId, OpError> {
        let id = self.new_id();
        let (relation, tip) = match derivation {
            Derivation::Fork(tip) | Derivation::Branch(tip) => (Relation::Fork, tip),
            Derivation::Rotation => (Relation::Rotation, row.tip),
        };
        let mut ops = vec![
            Op::Create(NewSession {
                id: id.clone(),
                source: row.source.clone(),
                format: row.format.clone(),
                parent: Some((row.id.clone(), relation)),
                tip,
            }),
            // The child inherits the parent's events, so that its view starts with the bytes in the provider's
            // cache.
            Op::AddEvent(
                id.clone(),
                SessionEvent::Forked { from: row.id.0.clone(), n_events: row.n_events }.encode(),
            ),
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
        let end_reason = match derivation {
            Derivation::Fork(_) => None,
            Derivation::Branch(_) => Some(EndReason::Branched),
            Derivation::Rotation => Some(EndReason::Compression),
        };
        if let Some(reason) = end_reason {
            // Only one session has the goal.
            if row.goal.is_some() {
                set(&row.id, SessionUpdate::Goal(None));
            }
            set(&row.id, SessionUpdate::End(reason));
        }
        let expected_tips = vec![(row.id.clone(), row.tip)];
        self.store.commit(&Batch { at: self.clock.now(), expected_tips, ops })?;
        Ok(id)
    }

    /// The title with the next free number: "Task" is followed by "Task #2".
    pub fn next_title(&self, title: &str) -> String {
        let (base, _) = split_number(title);
        // If an unreadable session has the title, the store refuses it on commit.
        let rows = readable_sessions(&*self.store, &SessionFilter::default()).rows;
        let titles = rows.iter().filter_map(|row| row.title.as_deref());
        let numbers = titles.map(split_number).filter(|(other, _)| *other == base).map(|(_, number)| number);
        let next = numbers.max().unwrap_or(1) + 1;
        let suffix = format!(" #{next}");
        let base: String = base.chars().take(MAX_TITLE_CHARS - suffix.chars().count()).collect();
        format!("{}{suffix}", base.trim_end())
    }

    /// The session that continues a conversation after any number of rotations.
    pub fn latest_rotation(&self, session: &SessionId) -> Result<SessionRow, OpError> {
        let mut row = self.row(session)?;
        let family = self
            .store
            .sessions(&SessionFilter { root: Some(row.root.clone()), ..SessionFilter::default() })?;
        // Each iteration moves to a child, so the number of sessions bounds the loop.
        for _ in 0..family.len() {
            let children = family.iter().filter(
                |child| matches!(&child.parent, Some((parent, Relation::Rotation)) if *parent == row.id),
            );
            // Prefer a child that continues: open, or rotated itself. Of several, take the last updated one.
            let next = children.max_by_key(|child| {
                let continues = child.ended.as_ref().is_none_or(|(_, why)| *why == EndReason::Compression);
                (continues, child.updated_at, child.started_at)
            });
            // A session that was reopened after its rotation continues by itself.
            let is_reopened = |next: &SessionRow| row.ended.is_none() && row.updated_at > next.started_at;
            match next.filter(|next| !is_reopened(next)) {
                Some(next) => row = next.clone(),
                None => break,
            }
        }
        Ok(row)
    }

    /// The sessions, the last updated first. Of sessions updated at the same time, open ones come first.
    pub fn sessions(&self, filter: &SessionFilter) -> Result<Vec<SessionRow>, StoreError> {
        let mut rows = self.store.sessions(&SessionFilter { limit: None, ..filter.clone() })?;
        sort_sessions(&mut rows, filter.limit);
        Ok(rows)
    }

    /// Like [`sessions`](Self::sessions), but returns the readable sessions together with the errors of unreadable
    /// ones.
    pub fn readable_sessions(&self, filter: &SessionFilter) -> ReadableSessions {
        let mut readable = readable_sessions(&*self.store, &SessionFilter { limit: None, ..filter.clone() });
        sort_sessions(&mut readable.rows, filter.limit);
        readable
    }

    /// Finds a session by its id, its title, its number in the list, or a prefix of its id.
    pub fn find(&self, name: &str) -> Result<SessionRow, OpError> {
        if let Some(row) = self.store.session(&SessionId(name.to_owned()))? {
            return Ok(row);
        }
        // An unreadable session must not hide the others.
        let rows = self.readable_sessions(&SessionFilter::default()).rows;
        if let Some(row) = with_title_or_number(&rows, name) {
            return Ok(row.clone());
        }
        match with_id_prefix(rows, name).as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(StoreError::NoSession(SessionId(name.to_owned())).into()),
            many => Err(OpError::invalid(
                format!("{} session ids start with {name:?}: {}", many.len(), list_ids(many)),
                "give more of the id",
            )),
        }
    }

    /// Finds the session to append to by its id, its title or its number in the list; none if it is a new name. The
    /// prefix of an id is an error: the name may be meant for a new session, which must not be merged into an old
    /// one.
    pub fn find_to_continue(&self, name: &str) -> Result<Option<SessionRow>, OpError> {
        if let Some(row) = self.store.session(&SessionId(name.to_owned()))? {
            return Ok(Some(row));
        }
        // An unreadable session is an error here, because it may have the name.
        let rows = self.sessions(&SessionFilter::default())?;
        if let Some(row) = with_title_or_number(&rows, name) {
            return Ok(Some(row.clone()));
        }
        match with_id_prefix(rows, name).as_slice() {
            [] => Ok(None),
            matches => Err(OpError::invalid(
                format!("there is no session {name:?}, but it is a prefix of {}", list_ids(matches)),
                "give the whole id to continue that session, or another name for a new one",
            )),
        }
    }
}

/// Sorts sessions for lists and applies the limit afterwards, because the store sorts differently.
fn sort_sessions(rows: &mut Vec<SessionRow>, limit: Option<usize>) {
    rows.sort_by_key(|row| (std::cmp::Reverse(row.updated_at), row.ended.is_some()));
    rows.truncate(limit.unwrap_or(usize::MAX));
}

/// The session with this title, or with this number in the list.
fn with_title_or_number<'a>(rows: &'a [SessionRow], name: &str) -> Option<&'a SessionRow> {
    // Ids start with a date, so a number of up to four digits cannot be the prefix of an id.
    let number = || name.parse::<usize>().ok().filter(|_| name.len() < 5);
    let titled = rows.iter().find(|row| row.title.as_deref() == Some(name));
    titled.or_else(|| rows.get(number()?.checked_sub(1)?))
}

fn with_id_prefix(mut rows: Vec<SessionRow>, name: &str) -> Vec<SessionRow> {
    rows.retain(|row| row.id.0.starts_with(name));
    rows
}

/// Fails if a session has ended, because it cannot end again.
fn ensure_open(row: &SessionRow, what: &str) -> Result<(), OpError> {
    let Some((_, reason)) = &row.ended else { return Ok(()) };
    Err(OpError::invalid(
        format!("session {} has ended ({}), so it can't be {what}", row.id, reason.name()),
        format!("`fanfold sessions resume {}` shows the session that continues it", row.id),
    ))
}

/// Lists the ids of sessions, at most ten.
fn list_ids(rows: &[SessionRow]) -> String {
    const MAX_IDS: usize = 10;
    let ids: Vec<String> = rows.iter().take(MAX_IDS).map(|row| row.id.to_string()).collect();
    let more = if rows.len() > MAX_IDS { ", …" } else { "" };
    format!("{}{more}", ids.join(", "))
}

/// Splits a title such as "Task #2" into its base and its number.
fn split_number(title: &str) -> (&str, u64) {
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
    fn a_title_without_a_number_has_number_one() {
        assert_eq!(split_number("Task"), ("Task", 1));
        assert_eq!(split_number("Task #12"), ("Task", 12));
        assert_eq!(split_number("Issue #x"), ("Issue #x", 1));
        assert_eq!(split_number(" #3"), (" #3", 1));
    }
}
