//! The sessions used last, a few hundred of them.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use fanfold_core::Pressure;
use fanfold_store::SessionId;

use super::glance::Seen;
use super::money::{Account, Money};

/// So many are known; of more, those that were used last.
const MOST: usize = 300;

/// Sessions by their ids.
#[derive(Default)]
pub(super) struct Sessions {
    by_id: HashMap<SessionId, Known>,
    /// Counts uses, so that the one used last has the highest number.
    n_uses: u64,
}

/// What is known of a session.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) words: String,
    pub(super) format: &'static str,
    pub(super) model: String,
    /// When it was first seen here, and last.
    pub(super) since: SystemTime,
    pub(super) last: Duration,
    pub(super) n_requests: u64,
    pub(super) n_in_flight: u64,
    /// How many folds it has had in all, and how many of those were made here.
    pub(super) n_folds: u64,
    pub(super) n_folds_here: u64,
    pub(super) n_recalls: u64,
    pub(super) n_misses: u64,
    pub(super) n_turns: u64,
    pub(super) n_summaries: u64,
    pub(super) window: u64,
    pub(super) room: u64,
    pub(super) came: u64,
    pub(super) sent: u64,
    /// What the smallest view needs, where none fits.
    pub(super) needs: Option<u64>,
    pub(super) pressure: Pressure,
    /// What folds made here took out.
    pub(super) folded_away: u64,
    pub(super) money: Money,
    pub(super) has_price: bool,
    pub(super) account: Account,
    pub(super) seen: Option<Seen>,
    used: u64,
}

impl Known {
    fn new(format: &'static str, now: Duration) -> Known {
        Known {
            words: String::new(),
            format,
            model: String::new(),
            since: SystemTime::now(),
            last: now,
            n_requests: 0,
            n_in_flight: 0,
            n_folds: 0,
            n_folds_here: 0,
            n_recalls: 0,
            n_misses: 0,
            n_turns: 0,
            n_summaries: 0,
            window: 0,
            room: 0,
            came: 0,
            sent: 0,
            needs: None,
            pressure: Pressure::None,
            folded_away: 0,
            money: Money::default(),
            has_price: false,
            account: Account::default(),
            seen: None,
            used: 0,
        }
    }
}

impl Sessions {
    /// A session that is known.
    pub(super) fn get(&mut self, id: &SessionId) -> Option<&mut Known> {
        self.by_id.get_mut(id)
    }

    /// A session, known from now on. What was not used for longest is forgotten for it.
    pub(super) fn take_up(&mut self, id: &SessionId, format: &'static str, now: Duration) -> &mut Known {
        let is_new = !self.by_id.contains_key(id);
        if is_new && self.by_id.len() >= MOST {
            let oldest = self.by_id.iter().min_by_key(|(_, known)| known.used).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                self.by_id.remove(&oldest);
            }
        }
        self.n_uses += 1;
        let known = self.by_id.entry(id.clone()).or_insert_with(|| Known::new(format, now));
        known.used = self.n_uses;
        known.last = now;
        known
    }

    /// How many are known.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// All of them, those used last first.
    pub(super) fn by_use(&self) -> Vec<(&SessionId, &Known)> {
        let mut all: Vec<_> = self.by_id.iter().collect();
        all.sort_by_key(|(_, known)| std::cmp::Reverse(known.used));
        all
    }
}
