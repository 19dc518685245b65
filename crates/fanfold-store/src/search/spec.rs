//! The parameters of a search, and the selection of visible hits.
//!
//! Each store finds candidates in its own index. This module selects the visible ones and attributes them to
//! sessions, in the same way for all stores and kinds of reply. A message without an owning session is never
//! visible.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::model::{Millis, Node, Role, SessionId, SessionRow};
use crate::search::query::Query;
use crate::store::StoreError;

/// The parameters of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchSpec {
    /// The words to find.
    pub query: Query,
    /// Only messages of these roles; all roles if empty.
    pub roles: Vec<Role>,
    /// Only sessions of these sources; all sources if empty.
    pub sources: Vec<String>,
    /// No sessions of these sources.
    pub excluded_sources: Vec<String>,
    /// No sessions of this lineage.
    pub excluded_root: Option<SessionId>,
    /// Hits in sessions of these sources come after all others.
    pub low_priority_sources: Vec<String>,
    /// Only this session.
    pub session: Option<SessionId>,
    /// Only messages of this time or later.
    pub since: Option<Millis>,
    /// Only messages before this time.
    pub before: Option<Millis>,
    /// Messages to leave out, because they are in the caller's view.
    pub live: Option<LiveMessages>,
    /// The order of the hits.
    pub order: HitOrder,
    /// If true, only the first hit of each lineage is returned.
    pub is_one_per_lineage: bool,
    /// The maximum number of hits.
    pub limit: usize,
    /// The number of hits to skip.
    pub offset: usize,
}

/// The messages of a session that its current view contains unfolded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveMessages {
    /// The session.
    pub session: SessionId,
    /// The depths of the messages.
    pub depths: Vec<Range<u32>>,
}

impl LiveMessages {
    /// Returns whether the message at a depth is live.
    pub fn contains(&self, depth: u32) -> bool {
        self.depths.iter().any(|depths| depths.contains(&depth))
    }
}

/// The order of hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HitOrder {
    /// By score, the best first.
    #[default]
    Best,
    /// By time, the newest first.
    Newest,
    /// By time, the oldest first.
    Oldest,
}

impl SearchSpec {
    /// Returns whether the filters accept a message with this role and time.
    pub(crate) fn accepts(&self, role: Role, at: Millis) -> bool {
        (self.roles.is_empty() || self.roles.contains(&role))
            && self.since.is_none_or(|since| at >= since)
            && self.before.is_none_or(|before| at < before)
    }
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SearchHits {
    /// The hits in the requested order.
    pub hits: Vec<SearchHit>,
    /// The number of skipped hits: the offset, or fewer if there are fewer hits.
    pub n_skipped: usize,
    /// The number of lineages with a candidate.
    pub n_lineages: usize,
    /// True if the search hit a limit: only the newest of very many candidates were ranked, or a prefix or part was
    /// expanded to only some of its words.
    pub is_bounded: bool,
}

/// A message found by a search.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The message.
    pub node: Node,
    /// The newest session with the message in the oldest lineage with it.
    pub session: SessionRow,
    /// The newest session of every other lineage with the message: forks that branch off after it.
    pub also_in: Vec<SessionId>,
    /// The relevance; higher is better.
    pub score: f64,
}

/// A message that matches the query, before its visibility is checked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) number: u64,
    /// The lane.
    pub(crate) lane: i64,
    pub(crate) depth: u32,
    pub(crate) at: Millis,
    pub(crate) score: f64,
}

/// Sorts candidates; ties are broken by score and number.
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

/// Collects visible hits from candidates until the limit is reached.
pub(crate) struct HitCollector<'a> {
    spec: &'a SearchSpec,
    /// The roots of the lineages that already had a candidate.
    seen: BTreeSet<SessionId>,
    /// Hits of low-priority sources, which are appended last.
    low_priority_hits: Vec<SearchHit>,
    hits: SearchHits,
}

/// The owners of a message.
pub(crate) struct Ownership {
    /// The sessions whose chain contains the message, the oldest first.
    pub(crate) owners: Vec<SessionRow>,
    /// True if the message is live in the caller's view.
    pub(crate) is_live: bool,
}

impl<'a> HitCollector<'a> {
    pub(crate) fn new(spec: &'a SearchSpec) -> HitCollector<'a> {
        let seen = spec.excluded_root.iter().cloned().collect();
        HitCollector { spec, seen, low_priority_hits: Vec::new(), hits: SearchHits::default() }
    }

    /// Returns whether the lineage has had a candidate.
    pub(crate) fn has_seen(&self, root: &SessionId) -> bool {
        self.seen.contains(root)
    }

    pub(crate) fn is_done(&self) -> bool {
        self.hits.hits.len() >= self.spec.limit
    }

    /// Adds a candidate to the hits if it is visible. Calls `load_node` only for hits.
    pub(crate) fn offer(
        &mut self,
        score: f64,
        ownership: Ownership,
        load_node: impl FnOnce() -> Result<Option<Node>, StoreError>,
    ) -> Result<(), StoreError> {
        if ownership.is_live {
            return Ok(());
        }
        let Some((session, also_in)) = self.attribute(ownership.owners) else { return Ok(()) };
        let is_repeated_lineage = self.spec.is_one_per_lineage && self.has_seen(&session.root);
        if is_repeated_lineage || self.spec.excluded_root.as_ref() == Some(&session.root) {
            return Ok(());
        }
        if self.spec.low_priority_sources.contains(&session.source) {
            self.seen.insert(session.root.clone());
            if self.low_priority_hits.len() < self.spec.offset + self.spec.limit
                && let Some(node) = load_node()?
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
        let Some(node) = load_node()? else { return Ok(()) };
        self.seen.insert(session.root.clone());
        self.hits.hits.push(SearchHit { node, session, also_in, score });
        Ok(())
    }

    /// Appends the low-priority hits and returns the result.
    pub(crate) fn finish(mut self, is_bounded: bool) -> SearchHits {
        for hit in self.low_priority_hits.drain(..) {
            if self.hits.n_skipped < self.spec.offset {
                self.hits.n_skipped += 1;
            } else if self.hits.hits.len() < self.spec.limit {
                self.hits.hits.push(hit);
            }
        }
        self.hits.n_lineages = self.seen.len();
        self.hits.is_bounded = is_bounded;
        self.hits
    }

    /// Returns the session that a message is attributed to, and the sessions of other lineages; `None` if no owner
    /// passes the filters.
    fn attribute(&self, owners: Vec<SessionRow>) -> Option<(SessionRow, Vec<SessionId>)> {
        let spec = self.spec;
        let mut roots: Vec<SessionId> = Vec::new();
        let mut newest: BTreeMap<SessionId, SessionRow> = BTreeMap::new();
        for row in owners {
            let is_accepted = spec.session.as_ref().is_none_or(|session| row.id == *session)
                && (spec.sources.is_empty() || spec.sources.contains(&row.source))
                && !spec.excluded_sources.contains(&row.source);
            if !is_accepted {
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
