//! Finds the part of an imported conversation that is already stored.

use std::collections::{BTreeMap, HashMap};

use fanfold_store::{NodeId, SessionId, SessionRow, StoreError};

use crate::engine::SessionEngine;

/// Maps the session ids in an imported file to the ids in this store.
#[derive(Debug, Clone, Default)]
pub struct ImportedIds(BTreeMap<SessionId, SessionId>);

impl ImportedIds {
    /// Adds an imported session.
    pub fn insert(&mut self, foreign_id: SessionId, id: SessionId) {
        self.0.insert(foreign_id, id);
    }

    /// The id in this store of a session in the file.
    pub fn get(&self, foreign_id: &SessionId) -> Option<&SessionId> {
        self.0.get(foreign_id)
    }
}

/// The part of a conversation that is already stored.
#[derive(Debug)]
pub(crate) enum StoredPart {
    /// Nothing. The id is free for the new session.
    Nothing(SessionId),
    /// All messages.
    All(SessionId),
    /// The first n messages. The rest is new.
    Beginning(Box<SessionRow>, usize),
}

/// How a stored session was matched to an imported one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MatchKind {
    /// By its id.
    Id,
    /// By its messages. The ids differ.
    Content,
}

impl SessionEngine {
    /// Finds the session that contains a chain of messages or its beginning. `is_same` decides whether a session
    /// with the first messages of the chain is the imported session.
    pub(crate) fn find_stored_part(
        &self,
        id: Option<&SessionId>,
        chain: &[NodeId],
        is_same: &dyn Fn(&SessionRow, MatchKind) -> Result<bool, StoreError>,
    ) -> Result<StoredPart, StoreError> {
        let with_id = match id {
            Some(id) => match self.store.session(id)? {
                None => return Ok(StoredPart::Nothing(id.clone())),
                row => row,
            },
            None => None,
        };
        let positions: HashMap<NodeId, usize> = chain.iter().copied().zip(1..).collect();
        // The number of messages of a session, if they are the first messages of the chain.
        let n_stored = |row: &SessionRow| match row.tip {
            Some(tip) => positions.get(&tip).copied(),
            None => chain.is_empty().then_some(0),
        };
        if let Some(row) = with_id {
            match n_stored(&row) {
                Some(n) if n == chain.len() => return Ok(StoredPart::All(row.id)),
                Some(n) if is_same(&row, MatchKind::Id)? => {
                    return Ok(StoredPart::Beginning(Box::new(row), n));
                }
                _ => {}
            }
            // The stored session may have more messages than the chain.
            if let Some(tip) = chain.last()
                && self.owners_of(*tip)?.contains(&row.id)
            {
                return Ok(StoredPart::All(row.id));
            }
        }
        // An earlier import may have stored it under another id.
        for id in chain.last().map_or(Ok(Vec::new()), |tip| self.owners_of(*tip))? {
            if self.store.session(&id)?.is_some_and(|row| n_stored(&row) == Some(chain.len())) {
                return Ok(StoredPart::All(id));
            }
        }
        let first = chain.first().filter(|_| id.is_some());
        let mut longest: Option<(SessionRow, usize)> = None;
        for id in first.map_or(Ok(Vec::new()), |first| self.owners_of(*first))? {
            let Some(row) = self.store.session(&id)? else { continue };
            let Some(n) = n_stored(&row) else { continue };
            if longest.as_ref().is_none_or(|(_, longest)| n > *longest) && is_same(&row, MatchKind::Content)?
            {
                longest = Some((row, n));
            }
        }
        Ok(match longest {
            Some((row, n)) => StoredPart::Beginning(Box::new(row), n),
            None => StoredPart::Nothing(self.new_id()),
        })
    }

    /// The sessions that contain a message; empty if the message is not stored.
    pub(crate) fn owners_of(&self, node: NodeId) -> Result<Vec<SessionId>, StoreError> {
        match self.store.owners(node) {
            Err(StoreError::NoNode(_)) => Ok(Vec::new()),
            owners => owners,
        }
    }
}
