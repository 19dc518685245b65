//! Search in a database: by its full text index, and by a scan of the messages that are not indexed yet.
//!
//! The index may lag behind the messages, so that appending stays cheap. It catches up every few hundred messages and
//! before a search. If it cannot, because the store is read-only, another process is indexing or there are very many,
//! the search reads the newest unindexed messages.

use std::collections::HashMap;
use std::ops::Range;

use crate::database::chain;
use crate::database::sql::{Sql, SqlValue};
use crate::database::tables;
use crate::model::{Millis, Role};
use crate::search::index::memory::MemoryIndex;
use crate::search::index::owners::OwnerLookup;
use crate::search::index::sql_index::{CandidateFilter, Index, matching_words};
use crate::search::query::{ExpandedQuery, Query};
use crate::search::spec::{Candidate, HitCollector, HitOrder, SearchHits, SearchSpec, sort};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The maximum number of candidates that are ranked together; if there are more, the newest are ranked first.
const MAX_RANKED: usize = 1_000;

/// The maximum number of unindexed messages that a search reads; if there are more, the newest.
const MAX_UNINDEXED: usize = 4_000;

/// Searches a database.
pub(crate) fn search(sql: &mut dyn Sql, index: &dyn Index, spec: &SearchSpec) -> Result<SearchHits> {
    let collector = HitCollector::new(spec);
    let Some(numbers) = number_range(sql, spec)? else { return Ok(collector.finish(false)) };
    if spec.limit == 0 || spec.query.is_empty() {
        return Ok(collector.finish(false));
    }
    // Read the unindexed messages first: a message indexed in between is then found twice instead of not at all.
    let unindexed = UnindexedMessages::read(sql, index, spec)?;
    let query = expand(sql, index, &unindexed, &spec.query)?;
    let mut lookup = Lookup {
        spec,
        index,
        unindexed: unindexed.candidates(&query, spec),
        owners: OwnerLookup::new(sql, spec)?,
        collector,
        numbers,
        is_ranked: spec.order == HitOrder::Best,
        is_bounded: query.is_truncated || unindexed.is_truncated,
        query,
    };
    loop {
        let (candidates, is_last) = lookup.next_candidates(sql)?;
        lookup.collect(sql, candidates)?;
        if lookup.collector.is_done() || is_last {
            return Ok(lookup.collector.finish(lookup.is_bounded));
        }
    }
}

/// Expands a query to words of the vocabulary and of the unindexed messages.
fn expand(
    sql: &mut dyn Sql,
    index: &dyn Index,
    unindexed: &UnindexedMessages,
    query: &Query,
) -> Result<ExpandedQuery> {
    query.expand(|pattern, limit| {
        let mut matching = matching_words(sql, index, pattern, limit)?;
        matching.extend(unindexed.index.matching_words(pattern, limit));
        matching.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        matching.dedup();
        matching.truncate(limit);
        Ok(matching)
    })
}

/// A search in progress.
struct Lookup<'a> {
    spec: &'a SearchSpec,
    index: &'a dyn Index,
    query: ExpandedQuery,
    /// The candidates that are not indexed, until they are returned.
    unindexed: Vec<Candidate>,
    owners: OwnerLookup<'a>,
    collector: HitCollector<'a>,
    /// The range of message numbers that are not searched yet.
    numbers: Range<i64>,
    is_ranked: bool,
    is_bounded: bool,
}

impl Lookup<'_> {
    /// Returns the next candidates in the order of the search, and whether they are the last.
    fn next_candidates(&mut self, sql: &mut dyn Sql) -> Result<(Vec<Candidate>, bool)> {
        let spec = self.spec;
        // Lineages that already have a hit need no other. After the first round, candidates are not ranked.
        let excluded_lanes =
            if spec.is_one_per_lineage { self.owners.finished_lanes(&self.collector) } else { Vec::new() };
        let filter = CandidateFilter {
            spec,
            numbers: self.numbers.clone(),
            excluded_lanes: &excluded_lanes,
            is_ranked: self.is_ranked,
            limit: MAX_RANKED,
        };
        let (mut candidates, has_scores) = self.index.candidates(sql, &self.query, &filter)?;
        let is_last = candidates.len() < MAX_RANKED;
        self.is_bounded |= !is_last || (self.is_ranked && !has_scores);
        self.is_ranked &= !spec.is_one_per_lineage;
        let numbers = candidates.iter().map(|found| found.number as i64);
        match spec.order {
            HitOrder::Oldest => self.numbers.start = numbers.max().map_or(0, |last| last + 1),
            HitOrder::Best | HitOrder::Newest => self.numbers.end = numbers.min().unwrap_or(0),
        }
        // Unindexed messages are the newest, so in the order of age they follow all indexed ones.
        if spec.order != HitOrder::Oldest || is_last {
            candidates.retain(|found| self.unindexed.iter().all(|other| other.number != found.number));
            candidates.append(&mut self.unindexed);
        }
        sort(&mut candidates, spec.order);
        Ok((candidates, is_last))
    }

    /// Offers candidates to the collector until it is done.
    fn collect(&mut self, sql: &mut dyn Sql, candidates: Vec<Candidate>) -> Result<()> {
        for found in candidates {
            if self.collector.is_done() {
                break;
            }
            let ownership = self.owners.owners_of(sql, &found)?;
            self.collector.offer(found.score, ownership, || {
                match chain::node_by_number(sql, found.number) {
                    // Skip a message whose predecessor is missing, and show the other hits.
                    Err(StoreError::Corrupt(_)) => Ok(None),
                    node => node,
                }
            })?;
        }
        Ok(())
    }
}

/// Returns the range of message numbers to search: that of the session, or all. `None` if the session has no
/// messages.
fn number_range(sql: &mut dyn Sql, spec: &SearchSpec) -> Result<Option<Range<i64>>> {
    let Some(session) = &spec.session else { return Ok(Some(0..i64::MAX)) };
    let Some(place) = tables::session(sql, session)?.and_then(|session| session.tip_position) else {
        return Ok(None);
    };
    let mut numbers = Range { start: i64::MAX, end: 0 };
    for (lane, depths) in chain::lane_ranges(sql, place.lane, 0..place.depth + 1)? {
        // Numbers increase along a lane, so its first and last message bound the range.
        for depth in [depths.start, depths.end - 1] {
            let text = "SELECT number FROM nodes WHERE lane = $1 AND depth = $2";
            for mut row in sql.query(text, &[SqlValue::Int(lane), SqlValue::Int(depth.into())])? {
                let number = row.int()?;
                numbers = numbers.start.min(number)..numbers.end.max(number + 1);
            }
        }
    }
    Ok(Some(numbers))
}

/// The messages that are not indexed, with an index in memory.
struct UnindexedMessages {
    index: MemoryIndex,
    messages: HashMap<u64, (i64, u32, Role, Millis)>,
    /// True if there are more than could be read.
    is_truncated: bool,
}

impl UnindexedMessages {
    fn read(sql: &mut dyn Sql, index: &dyn Index, spec: &SearchSpec) -> Result<UnindexedMessages> {
        let pending = index.newest_pending(sql, MAX_UNINDEXED)?;
        let mut unindexed = UnindexedMessages {
            index: MemoryIndex::default(),
            messages: HashMap::new(),
            is_truncated: pending.len() == MAX_UNINDEXED,
        };
        for stored in pending {
            if spec.accepts(stored.role, stored.at) {
                let number = stored.position.number.unsigned_abs();
                unindexed.index.add(number, &stored.json);
                unindexed
                    .messages
                    .insert(number, (stored.position.lane, stored.position.depth, stored.role, stored.at));
            }
        }
        Ok(unindexed)
    }

    fn candidates(&self, query: &ExpandedQuery, spec: &SearchSpec) -> Vec<Candidate> {
        let found = self.index.candidates(query).into_iter();
        let candidate = |(number, score): (u64, f64)| {
            let (lane, depth, role, at) = *self.messages.get(&number)?;
            spec.accepts(role, at).then_some(Candidate { number, lane, depth, at, score })
        };
        found.filter_map(candidate).collect()
    }
}
