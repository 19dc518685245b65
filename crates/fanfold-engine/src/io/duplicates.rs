//! What of a conversation that is brought here is here already.

use std::collections::{BTreeMap, HashMap};

use fanfold_store::{NodeId, SessionId, SessionRow, StoreError};

use crate::engine::Engine;

/// The sessions that came from one file: the ids that they had there, and those they have here.
#[derive(Debug, Clone, Default)]
pub struct Brought(BTreeMap<SessionId, SessionId>);

impl Brought {
    /// Takes note of a session.
    pub fn note(&mut self, there: SessionId, here: SessionId) {
        self.0.insert(there, here);
    }

    /// The id here of a session there.
    pub fn get(&self, there: &SessionId) -> Option<&SessionId> {
        self.0.get(there)
    }
}

/// What of a conversation is here already.
#[derive(Debug)]
pub(crate) enum Here {
    /// Nothing; this is to be its id.
    Nothing(SessionId),
    /// All of it.
    All(SessionId),
    /// A session with so many of its messages: it has gone on since.
    Beginning(Box<SessionRow>, usize),
}

/// How a session that may be the same one was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// It has the id.
    Id,
    /// It has another one, and says the same.
    Words,
}

impl Engine {
    /// What of a chain of messages is here. `is_same` says whether a session that has its first messages is the one
    /// that goes on with the others.
    pub(crate) fn here(
        &self,
        wanted: Option<&SessionId>,
        chain: &[NodeId],
        is_same: &dyn Fn(&SessionRow, By) -> Result<bool, StoreError>,
    ) -> Result<Here, StoreError> {
        let owner = match wanted {
            Some(wanted) => match self.store.session(wanted)? {
                None => return Ok(Here::Nothing(wanted.clone())),
                row => row,
            },
            None => None,
        };
        let places: HashMap<NodeId, usize> = chain.iter().copied().zip(1..).collect();
        let n_here = |row: &SessionRow| match row.tip {
            Some(tip) => places.get(&tip).copied(),
            None => chain.is_empty().then_some(0),
        };
        if let Some(row) = owner {
            match n_here(&row) {
                Some(n) if n == chain.len() => return Ok(Here::All(row.id)),
                Some(n) if is_same(&row, By::Id)? => return Ok(Here::Beginning(Box::new(row), n)),
                _ => {}
            }
            // It may have gone on here.
            if let Some(tip) = chain.last()
                && self.owners_of(*tip)?.contains(&row.id)
            {
                return Ok(Here::All(row.id));
            }
        }
        // Under another id it may have come before, all of it or, where somebody else has its own, its beginning.
        for id in chain.last().map_or(Ok(Vec::new()), |tip| self.owners_of(*tip))? {
            if self.store.session(&id)?.is_some_and(|row| n_here(&row) == Some(chain.len())) {
                return Ok(Here::All(id));
            }
        }
        let first = chain.first().filter(|_| wanted.is_some());
        let mut longest: Option<(SessionRow, usize)> = None;
        for id in first.map_or(Ok(Vec::new()), |first| self.owners_of(*first))? {
            let Some(row) = self.store.session(&id)? else { continue };
            let Some(n) = n_here(&row) else { continue };
            if longest.as_ref().is_none_or(|(_, longest)| n > *longest) && is_same(&row, By::Words)? {
                longest = Some((row, n));
            }
        }
        Ok(longest.map_or_else(|| Here::Nothing(self.new_id()), |(row, n)| Here::Beginning(Box::new(row), n)))
    }

    /// The sessions that have a message; none if it is not here.
    pub(crate) fn owners_of(&self, node: NodeId) -> Result<Vec<SessionId>, StoreError> {
        match self.store.owners(node) {
            Err(StoreError::NoNode(_)) => Ok(Vec::new()),
            owners => owners,
        }
    }
}
