//! What a store is asked to find, and which of the messages with those words may be seen.
//!
//! Every store finds messages by their words in its own way. Which of them are shown, and as whose, is decided here,
//! once for all stores and all shapes: a message that no session leads to is never seen.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::model::{Millis, Node, Role, SessionId, SessionRow};
use crate::search::query::Query;
use crate::store::StoreError;

/// What a store is asked to find.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchSpec {
    /// The words.
    pub query: Query,
    /// Messages in these names; in all if none are given.
    pub roles: Vec<Role>,
    /// Sessions of these sources; of all if none are given.
    pub sources: Vec<String>,
    /// Not sessions of these sources.
    pub excluded_sources: Vec<String>,
    /// Not this lineage.
    pub excluded_root: Option<SessionId>,
    /// Sessions of these sources come after all others.
    pub low_priority_sources: Vec<String>,
    /// This session alone.
    pub session: Option<SessionId>,
    /// Said at this moment or later.
    pub since: Option<Millis>,
    /// Said before this moment.
    pub before: Option<Millis>,
    /// What the caller sees anyway.
    pub live: Option<LiveMessages>,
    /// Which come first.
    pub order: HitOrder,
    /// One message of each lineage, and not each one.
    pub is_one_per_lineage: bool,
    /// At most so many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
}

/// The messages of a session that stand in its view as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveMessages {
    /// The session.
    pub session: SessionId,
    /// Their depths.
    pub depths: Vec<Range<u32>>,
}

impl LiveMessages {
    /// Whether the message of a depth is one of them.
    pub fn contains(&self, depth: u32) -> bool {
        self.depths.iter().any(|depths| depths.contains(&depth))
    }
}

/// Which come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HitOrder {
    /// The best ones.
    #[default]
    Best,
    /// The newest ones.
    Newest,
    /// The oldest ones.
    Oldest,
}

impl SearchSpec {
    /// Whether a message of a role and a moment is meant.
    pub(crate) fn accepts(&self, role: Role, at: Millis) -> bool {
        (self.roles.is_empty() || self.roles.contains(&role))
            && self.since.is_none_or(|since| at >= since)
            && self.before.is_none_or(|before| at < before)
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchHits {
    /// The messages, in the order asked for.
    pub hits: Vec<SearchHit>,
    /// How many come before them: as many as were to be skipped, or all that there are.
    pub n_skipped: usize,
    /// How many lineages were looked at to find them.
    pub n_lineages: usize,
    /// So many messages have the words that only the newest of them were ranked, or a part stands for so many words
    /// that only some were looked for.
    pub is_bounded: bool,
}

/// A message that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The message.
    pub node: Node,
    /// Whose it is: of the oldest lineage that has it, the newest session that does.
    pub session: SessionRow,
    /// Other lineages that have it too: forks from behind it, each by its newest session.
    pub also_in: Vec<SessionId>,
    /// How well it fits; more is better.
    pub score: f64,
}

/// A message with the words, before it is known who may see it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) number: u64,
    /// Its lane, where there are lanes.
    pub(crate) lane: i64,
    pub(crate) depth: u32,
    pub(crate) at: Millis,
    pub(crate) score: f64,
}

/// Puts candidates in the order asked for.
pub(crate) fn sort(candidates: &mut [Candidate], order: HitOrder) {
    candidates.sort_by(|a, b| {
        let by_score = b.score.total_cmp(&a.score).then(b.number.cmp(&a.number));
        match order {
            HitOrder::Best => by_score,
            HitOrder::Newest => b.at.cmp(&a.at).then(by_score),
            HitOrder::Oldest => a.at.cmp(&b.at).then(by_score),
        }
    });
}

/// Takes candidates until there are enough, each with its session.
pub(crate) struct HitCollector<'a> {
    spec: &'a SearchSpec,
    seen: BTreeSet<SessionId>,
    /// What comes last, as far as it may be shown.
    low_priority_hits: Vec<SearchHit>,
    hits: SearchHits,
}

/// Who has a message.
pub(crate) struct Ownership {
    /// The sessions whose chain has it, the oldest first.
    pub(crate) owners: Vec<SessionRow>,
    /// Whether it is live in the caller's view.
    pub(crate) is_live: bool,
}

impl<'a> HitCollector<'a> {
    pub(crate) fn new(find: &'a SearchSpec) -> HitCollector<'a> {
        let seen = find.excluded_root.iter().cloned().collect();
        HitCollector { spec: find, seen, low_priority_hits: Vec::new(), hits: SearchHits::default() }
    }

    /// Whether a message of a lineage was seen.
    pub(crate) fn has_seen(&self, root: &SessionId) -> bool {
        self.seen.contains(root)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.hits.hits.len() >= self.spec.limit
    }

    /// Takes a candidate if it may be seen and is wanted. `node` is asked for what is taken only.
    pub(crate) fn offer(
        &mut self,
        score: f64,
        owned: Ownership,
        node: impl FnOnce() -> Result<Option<Node>, StoreError>,
    ) -> Result<(), StoreError> {
        if owned.is_live {
            return Ok(());
        }
        let Some((session, also_in)) = self.attribute(owned.owners) else { return Ok(()) };
        let is_one_too_many = self.spec.is_one_per_lineage && self.has_seen(&session.root);
        if is_one_too_many || self.spec.excluded_root.as_ref() == Some(&session.root) {
            return Ok(());
        }
        if self.spec.low_priority_sources.contains(&session.source) {
            self.seen.insert(session.root.clone());
            if self.low_priority_hits.len() < self.spec.offset + self.spec.limit
                && let Some(node) = node()?
            {
                self.low_priority_hits.push(SearchHit { node, session, also_in, score });
            }
            return Ok(());
        }
        if self.hits.n_skipped < self.spec.offset {
            self.hits.n_skipped += 1;
            self.seen.insert(session.root);
            return Ok(());
        }
        let Some(node) = node()? else { return Ok(()) };
        self.seen.insert(session.root.clone());
        self.hits.hits.push(SearchHit { node, session, also_in, score });
        Ok(())
    }

    pub(crate) fn finish(mut self, is_bounded: bool) -> SearchHits {
        for found in self.low_priority_hits.drain(..) {
            if self.hits.n_skipped < self.spec.offset {
                self.hits.n_skipped += 1;
            } else if self.hits.hits.len() < self.spec.limit {
                self.hits.hits.push(found);
            }
        }
        self.hits.n_lineages = self.seen.len();
        self.hits.is_bounded = is_bounded;
        self.hits
    }

    /// Whose a message is, among those that may be shown.
    fn attribute(&self, owners: Vec<SessionRow>) -> Option<(SessionRow, Vec<SessionId>)> {
        let find = self.spec;
        let mut roots: Vec<SessionId> = Vec::new();
        let mut newest: BTreeMap<SessionId, SessionRow> = BTreeMap::new();
        for row in owners {
            let is_meant = find.session.as_ref().is_none_or(|session| row.id == *session)
                && (find.sources.is_empty() || find.sources.contains(&row.source))
                && !find.excluded_sources.contains(&row.source);
            if !is_meant {
                continue;
            }
            if !newest.contains_key(&row.root) {
                roots.push(row.root.clone());
            }
            newest.insert(row.root.clone(), row);
        }
        let mut rows = roots.iter().filter_map(|root| newest.remove(root));
        let session = rows.next()?;
        Some((session, rows.map(|row| row.id).collect()))
    }
}
