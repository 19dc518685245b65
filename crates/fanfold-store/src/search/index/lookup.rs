//! What is found in a database: by its full text, and by a scan of what is not indexed yet.
//!
//! An index may lag behind the messages, so that appending stays cheap. It catches up every few hundred messages and
//! before a search; what it lacks even then, since the store is read-only or another process is at it, is read.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::database::chain;
use crate::database::sql::{Row, Sql, SqlValue};
use crate::database::tables::{self, StoredMessage, read_session, session_columns};
use crate::model::{Millis, Role, SessionRow};
use crate::search::index::memory::MemoryIndex;
use crate::search::query::{ExpandedQuery, WordPattern};
use crate::search::spec::{Candidate, HitCollector, HitOrder, Ownership, SearchHits, SearchSpec, sort};
use crate::search::text::message_text::message_text;
use crate::search::text::words::for_each_word;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// So many messages with the words are ranked at once. Where more have them, the newest ones are ranked first.
pub(crate) const MAX_RANKED: usize = 1_000;

/// So many lanes may be left out by name.
const MAX_EXCLUDED_LANES: usize = 500;

/// So many words are sorted to find the shortest of those that have a part.
pub(crate) const MAX_SORTED_WORDS: i64 = 20_000;

/// So many messages are indexed at once.
pub(crate) const INDEX_BATCH: usize = 256;

/// The number of a role in an index.
pub(crate) fn role_number(role: Role) -> i64 {
    match role {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
        Role::Other => 4,
    }
}

/// Full text in a database.
pub(crate) trait Index {
    /// Keeps others from indexing until the transaction ends; false if another one is at it.
    fn try_lock(&self, sql: &mut dyn Sql) -> Result<bool>;

    /// Messages that are not indexed, the oldest first, at most so many.
    fn pending(&self, sql: &mut dyn Sql, limit: usize) -> Result<Vec<StoredMessage>>;

    /// Indexes messages: the words of each, and every word of any of them.
    fn add(&self, sql: &mut dyn Sql, texts: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()>;

    /// Removes messages, and those of these words that are in no other message.
    fn remove(&self, sql: &mut dyn Sql, texts: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()>;

    /// How many messages are missing from the index or stand in it wrongly.
    fn n_inconsistent(&self, sql: &mut dyn Sql) -> Result<i64>;

    /// Empties the index: every message is to be indexed again.
    fn clear(&self, sql: &mut dyn Sql) -> Result<()>;

    /// Words of the vocabulary, the shortest first, at most so many.
    fn matching_words(&self, sql: &mut dyn Sql, like: &WordPattern, limit: usize) -> Result<Vec<String>>;

    /// Messages with the words, the newest or the oldest first, and whether each of them has its score.
    fn candidates(
        &self,
        sql: &mut dyn Sql,
        query: &ExpandedQuery,
        wanted: &CandidateFilter,
    ) -> Result<(Vec<Candidate>, bool)>;
}

/// A message to be indexed.
pub(crate) struct IndexEntry {
    pub(crate) stored: StoredMessage,
    /// Its words in order, a space between each two.
    pub(crate) words: String,
}

/// Which messages are wanted, beside their words.
pub(crate) struct CandidateFilter<'a> {
    /// What was asked.
    pub(crate) spec: &'a SearchSpec,
    /// Of these numbers.
    pub(crate) numbers: Range<i64>,
    /// Not of these lanes.
    pub(crate) excluded_lanes: &'a [i64],
    /// Whether a score is worth its time.
    pub(crate) is_ranked: bool,
    /// At most so many.
    pub(crate) limit: usize,
}

/// Indexes some messages that are not indexed yet. Gives how many.
pub(crate) fn index_pending(sql: &mut dyn Sql, index: &dyn Index) -> Result<usize> {
    if !index.try_lock(sql)? {
        return Ok(0);
    }
    let pending = index.pending(sql, INDEX_BATCH)?;
    let n = pending.len();
    if n > 0 {
        let (texts, vocabulary) = tokenize(pending);
        index.add(sql, &texts, &vocabulary)?;
    }
    Ok(n)
}

/// Whether there are messages that are not indexed.
pub(crate) fn has_pending(sql: &mut dyn Sql, index: &dyn Index) -> Result<bool> {
    Ok(!index.pending(sql, 1)?.is_empty())
}

/// Makes the index anew from the messages.
pub(crate) fn rebuild(sql: &mut dyn Sql, index: &dyn Index) -> Result<()> {
    index.clear(sql)?;
    while index_pending(sql, index)? == INDEX_BATCH {}
    Ok(())
}

/// Takes messages out of the index, before they are removed.
pub(crate) fn remove_messages(sql: &mut dyn Sql, index: &dyn Index, gone: Vec<StoredMessage>) -> Result<()> {
    let (texts, vocabulary) = tokenize(gone);
    index.remove(sql, &texts, &vocabulary)
}

fn tokenize(messages: Vec<StoredMessage>) -> (Vec<IndexEntry>, BTreeSet<String>) {
    // Most words were seen before: they are looked up by their hash, and put in order once.
    let mut vocabulary = HashSet::new();
    let mut texts = Vec::with_capacity(messages.len());
    for stored in messages {
        let text = message_text(&stored.json);
        let mut words = String::with_capacity(text.len());
        for_each_word(&text, |_, word| {
            if !vocabulary.contains(word) {
                vocabulary.insert(word.to_owned());
            }
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        });
        texts.push(IndexEntry { stored, words });
    }
    (texts, vocabulary.into_iter().collect())
}

/// The messages that may be seen and have the words.
pub(crate) fn search(sql: &mut dyn Sql, index: &dyn Index, find: &SearchSpec) -> Result<SearchHits> {
    let mut picker = HitCollector::new(find);
    let Some(mut numbers) = number_range(sql, find)? else { return Ok(picker.finish(false)) };
    if find.limit == 0 || find.query.is_empty() {
        return Ok(picker.finish(false));
    }
    // First what is not indexed, then what is: a message that is indexed in between is there twice, and not lost.
    let rest = Unindexed::read(sql, index, find)?;
    let query = find.query.expand(|like, limit| {
        let mut alike = index.matching_words(sql, like, limit)?;
        alike.extend(rest.index.matching_words(like, limit));
        alike.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        alike.dedup();
        alike.truncate(limit);
        Ok::<_, StoreError>(alike)
    })?;
    let mut rest = rest.candidates(&query, find);
    let mut owners = OwnerLookup::new(sql, find)?;
    let mut is_bounded = query.is_narrowed;
    let mut is_ranked = find.order == HitOrder::Best;
    loop {
        // Lineages that have their hit need no more; what is left of the others is taken as it comes.
        let without_lanes = if find.is_one_per_lineage { owners.finished_lanes(&picker) } else { Vec::new() };
        let wanted = CandidateFilter {
            spec: find,
            numbers: numbers.clone(),
            excluded_lanes: &without_lanes,
            is_ranked,
            limit: MAX_RANKED,
        };
        let (mut candidates, has_scores) = index.candidates(sql, &query, &wanted)?;
        is_bounded |= is_ranked && !has_scores;
        is_ranked &= !find.is_one_per_lineage;
        let is_last = candidates.len() < MAX_RANKED;
        is_bounded |= !is_last;
        match find.order {
            HitOrder::Oldest => {
                numbers.start = candidates.iter().map(|found| found.number as i64 + 1).max().unwrap_or(0);
            }
            HitOrder::Best | HitOrder::Newest => {
                numbers.end = candidates.iter().map(|found| found.number as i64).min().unwrap_or(0);
            }
        }
        // The oldest come first, and nothing is newer than what is not indexed.
        if find.order != HitOrder::Oldest || is_last {
            candidates.retain(|found| rest.iter().all(|other| other.number != found.number));
            candidates.append(&mut rest);
        }
        sort(&mut candidates, find.order);
        for found in candidates {
            if picker.is_done() {
                break;
            }
            let owned = owners.owners_of(sql, &found)?;
            picker.offer(found.score, owned, || match chain::node_by_number(sql, found.number) {
                // What stands behind a message that is gone can't be shown, and the others can.
                Err(StoreError::Broken(_)) => Ok(None),
                node => node,
            })?;
        }
        if picker.is_done() || is_last {
            return Ok(picker.finish(is_bounded));
        }
    }
}

/// The numbers that the messages of a session are among, or of all; none if there is no such session.
fn number_range(sql: &mut dyn Sql, find: &SearchSpec) -> Result<Option<Range<i64>>> {
    let Some(session) = &find.session else { return Ok(Some(0..i64::MAX)) };
    let Some(place) = tables::session(sql, session)?.and_then(|session| session.tip_position) else {
        return Ok(None);
    };
    let mut numbers = Range { start: i64::MAX, end: 0 };
    for (lane, depths) in chain::lane_ranges(sql, place.lane, 0..place.depth + 1)? {
        // Numbers grow along a lane.
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

/// Messages that are not indexed.
struct Unindexed {
    index: MemoryIndex,
    messages: HashMap<u64, (i64, u32, Role, Millis)>,
}

impl Unindexed {
    fn read(sql: &mut dyn Sql, index: &dyn Index, find: &SearchSpec) -> Result<Unindexed> {
        let mut rest = Unindexed { index: MemoryIndex::default(), messages: HashMap::new() };
        for stored in index.pending(sql, usize::MAX)? {
            if find.accepts(stored.role, stored.at) {
                let number = stored.position.number.unsigned_abs();
                rest.index.add(number, &stored.json);
                rest.messages
                    .insert(number, (stored.position.lane, stored.position.depth, stored.role, stored.at));
            }
        }
        Ok(rest)
    }

    fn candidates(&self, query: &ExpandedQuery, find: &SearchSpec) -> Vec<Candidate> {
        let found = self.index.candidates(query).into_iter();
        let candidate = |(number, score): (u64, f64)| {
            let (lane, depth, role, at) = *self.messages.get(&number)?;
            find.accepts(role, at).then_some(Candidate { number, lane, depth, at, score })
        };
        found.filter_map(candidate).collect()
    }
}

/// Who has which message.
struct OwnerLookup<'a> {
    spec: &'a SearchSpec,
    /// The depths of each lane that the caller's session has.
    caller_lanes: Vec<(i64, Range<u32>)>,
    /// For each lane, the sessions that have messages of it, and up to which depth.
    lanes: HashMap<i64, Vec<(u32, SessionRow)>>,
}

impl<'a> OwnerLookup<'a> {
    fn new(sql: &mut dyn Sql, find: &'a SearchSpec) -> Result<OwnerLookup<'a>> {
        let own = match &find.live {
            Some(live) => tables::session(sql, &live.session)?.and_then(|session| session.tip_position),
            None => None,
        };
        let own =
            own.map_or(Ok(Vec::new()), |place| chain::lane_ranges(sql, place.lane, 0..place.depth + 1))?;
        Ok(OwnerLookup { spec: find, caller_lanes: own, lanes: HashMap::new() })
    }

    /// The lanes whose every session is of a lineage that was seen, as far as they are known.
    fn finished_lanes(&self, picker: &HitCollector) -> Vec<i64> {
        let is_done = |rows: &[(u32, SessionRow)]| rows.iter().all(|(_, row)| picker.has_seen(&row.root));
        let done = self.lanes.iter().filter(|(_, rows)| is_done(rows)).map(|(lane, _)| *lane);
        done.take(MAX_EXCLUDED_LANES).collect()
    }

    fn owners_of(&mut self, sql: &mut dyn Sql, found: &Candidate) -> Result<Ownership> {
        let is_own = self
            .caller_lanes
            .iter()
            .any(|(lane, depths)| *lane == found.lane && depths.contains(&found.depth));
        let is_live = is_own && self.spec.live.as_ref().is_some_and(|live| live.contains(found.depth));
        if is_live {
            return Ok(Ownership { owners: Vec::new(), is_live });
        }
        let sharing = match self.lanes.entry(found.lane) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(sessions_on_lane(sql, found.lane)?),
        };
        let owners = sharing.iter().filter(|(last, _)| *last >= found.depth).map(|(_, row)| row.clone());
        Ok(Ownership { owners: owners.collect(), is_live })
    }
}

/// The sessions that have messages of a lane, the oldest first, and the last depth of it that each has.
fn sessions_on_lane(sql: &mut dyn Sql, lane: i64) -> Result<Vec<(u32, SessionRow)>> {
    const TEXT: &str = concat!(
        "WITH RECURSIVE sharing (lane, last) AS (SELECT lane, 4294967295 FROM lanes WHERE lane = $1 \
         UNION ALL SELECT l.lane, CASE WHEN l.start <= sharing.last THEN l.start - 1 ELSE sharing.last END \
         FROM lanes l JOIN sharing ON l.parent = sharing.lane) SELECT sharing.last, ",
        session_columns!(),
        // The order of the tables is given: SQLite would begin with all sessions.
        " FROM sharing CROSS JOIN sessions s CROSS JOIN nodes n \
         WHERE s.lane = sharing.lane AND n.number = s.tip AND sharing.last >= 0 ORDER BY s.started_at, s.id"
    );
    let read = |mut row: Row| {
        let last: u32 = row.integer()?;
        let session = read_session(row)?.row;
        Ok((last.min(session.n_messages.saturating_sub(1)), session))
    };
    sql.query(TEXT, &[SqlValue::Int(lane)])?.into_iter().map(read).collect()
}
