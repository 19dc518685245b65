//! The sessions used last.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanfold_core::Pressure;
use fanfold_store::SessionId;

use super::SessionStatus;
use crate::meter::cost::{BothCosts, CostAccount};
use crate::meter::fold_snapshot::SnapshotBase;

/// The maximum number of sessions. Those used last are kept.
const MAX_SESSIONS: usize = 300;

#[derive(Default)]
pub(crate) struct SessionTable {
    by_id: HashMap<SessionId, SessionEntry>,
    n_uses: u64,
}

pub(crate) struct SessionEntry {
    /// Counts of the session. `idle_seconds` and `dollars` are filled in when the status is read.
    pub(crate) status: SessionStatus,
    /// When its last request arrived or ended.
    pub(crate) last: Duration,
    pub(crate) cost: BothCosts,
    pub(crate) has_price: bool,
    pub(crate) account: CostAccount,
    /// The base of the next snapshot.
    pub(crate) base: Option<SnapshotBase>,
    last_use: u64,
}

impl SessionTable {
    pub(crate) fn get(&mut self, id: &SessionId) -> Option<&mut SessionEntry> {
        self.by_id.get_mut(id)
    }

    /// Finds or inserts a session. If the table is full, the least recently used session is removed.
    pub(crate) fn touch(&mut self, id: &SessionId, format: &'static str, now: Duration) -> &mut SessionEntry {
        if !self.by_id.contains_key(id) && self.by_id.len() >= MAX_SESSIONS {
            let oldest = self.by_id.iter().min_by_key(|(_, entry)| entry.last_use).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.by_id.remove(&oldest);
            }
        }
        self.n_uses += 1;
        let entry = self.by_id.entry(id.clone()).or_insert_with(|| new_entry(id, format));
        (entry.last_use, entry.last) = (self.n_uses, now);
        entry
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// All sessions, the one used last first.
    pub(crate) fn by_use(&self) -> Vec<&SessionEntry> {
        let mut all: Vec<_> = self.by_id.values().collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.last_use));
        all
    }
}

fn new_entry(id: &SessionId, format: &'static str) -> SessionEntry {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    SessionEntry {
        status: SessionStatus {
            id: id.0.clone(),
            format: format.to_owned(),
            since,
            pressure: Pressure::None.name().to_owned(),
            ..SessionStatus::default()
        },
        last: Duration::ZERO,
        cost: BothCosts::default(),
        has_price: false,
        account: CostAccount::default(),
        base: None,
        last_use: 0,
    }
}
