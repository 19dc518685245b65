//! Search in a database: by its full text index, and by a scan of the messages that are not indexed yet.
//!
//! The index may lag behind the messages, so that appending stays cheap. It catches up every few hundred messages and
//! before a search. If it cannot, because the store is read-only or another process is indexing, the search reads the
//! unindexed messages.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use crate::database::chain;
use crate::database::sql::{Sql, SqlRow, SqlValue};
use crate::database::tables::{self, StoredMessage, read_session, session_columns};
use crate::model::{Millis, Role, SessionRow};
use crate::search::index::memory::MemoryIndex;
use crate::search::query::{ExpandedQuery, WordPattern};
use crate::search::spec::{Candidate, HitCollector, HitOrder, Ownership, SearchHits, SearchSpec, sort};
use crate::search::text::message_text::message_text;
use crate::search::text::words::{for_each_word, is_single_char_word};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The maximum number of candidates that are ranked together; if there are more, the newest are ranked first.
pub(crate) const MAX_RANKED: usize = 1_000;

/// The maximum number of lanes that a query excludes.
const MAX_EXCLUDED_LANES: usize = 500;

/// The maximum number of matching words that are sorted to find the shortest.
const MAX_SORTED_WORDS: i64 = 20_000;

/// The number of messages that are indexed in one transaction.
pub(crate) const INDEX_BATCH: usize = 256;

/// Returns the number of a role in the index.
fn role_number(role: Role) -> i64 {
    match role {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
        Role::Other => 4,
    }
}

/// The full text index of a database.
pub(crate) trait Index {
    /// Tries to lock the index until the transaction ends; returns false if another process is indexing.
    fn try_lock(&self, sql: &mut dyn Sql) -> Result<bool>;

    /// Returns up to `limit` messages that are not indexed, the oldest first.
    fn pending(&self, sql: &mut dyn Sql, limit: usize) -> Result<Vec<StoredMessage>>;

    /// Adds messages to the index, and words to the vocabulary.
    fn add(&self, sql: &mut dyn Sql, entries: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()>;

    /// Removes messages, and removes those of the given words that no other message contains.
    fn remove(&self, sql: &mut dyn Sql, entries: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()>;

    /// Returns the number of messages that are missing from the index or indexed wrongly.
    fn n_inconsistent(&self, sql: &mut dyn Sql) -> Result<i64>;

    /// Empties the index, so that all messages are pending.
    fn clear(&self, sql: &mut dyn Sql) -> Result<()>;

    /// Returns up to `limit` words of the vocabulary that contain `part` and match a LIKE pattern, the shortest first.
    fn words_with_part(&self, sql: &mut dyn Sql, part: &str, like: &str, limit: usize)
    -> Result<Vec<String>>;

    /// Returns messages that match a query, the newest or the oldest first, and whether all of them have a score.
    fn candidates(
        &self,
        sql: &mut dyn Sql,
        query: &ExpandedQuery,
        filter: &CandidateFilter,
    ) -> Result<(Vec<Candidate>, bool)>;
}

/// A message to index.
pub(crate) struct IndexEntry {
    pub(crate) stored: StoredMessage,
    /// The words of the message in order, separated by spaces.
    pub(crate) words: String,
}

impl IndexEntry {
    /// Returns the columns that a search filters by: number, lane, depth, role and time.
    pub(crate) fn values(&self) -> [SqlValue<'static>; 5] {
        let StoredMessage { position, role, at, .. } = &self.stored;
        [
            SqlValue::Int(position.number),
            SqlValue::Int(position.lane),
            SqlValue::Int(position.depth.into()),
            SqlValue::Int(role_number(*role)),
            SqlValue::Int(at.0),
        ]
    }
}

/// The conditions for candidates in addition to the query.
pub(crate) struct CandidateFilter<'a> {
    /// The search.
    pub(crate) spec: &'a SearchSpec,
    /// The range of message numbers.
    pub(crate) numbers: Range<i64>,
    /// Lanes to leave out.
    pub(crate) excluded_lanes: &'a [i64],
    /// Compute scores if true.
    pub(crate) is_ranked: bool,
    /// The maximum number of candidates.
    pub(crate) limit: usize,
}

impl CandidateFilter<'_> {
    /// Returns the values of a statement with the filter: a match expression, the range of numbers, the range of
    /// times, and `rest`.
    pub(crate) fn values<'a>(&self, expression: &'a str, rest: &[SqlValue<'a>]) -> Vec<SqlValue<'a>> {
        let bounds = [
            SqlValue::Text(expression),
            SqlValue::Int(self.numbers.start),
            SqlValue::Int(self.numbers.end),
            SqlValue::Int(self.spec.since.map_or(i64::MIN, |since| since.0)),
            SqlValue::Int(self.spec.before.map_or(i64::MAX, |before| before.0)),
        ];
        [&bounds, rest].concat()
    }

    /// Returns the numbers of the roles to find; empty for all.
    pub(crate) fn roles(&self) -> Vec<i64> {
        self.spec.roles.iter().map(|role| role_number(*role)).collect()
    }

    /// Returns the direction in which candidates are ordered by their numbers.
    pub(crate) fn direction(&self) -> &'static str {
        if self.spec.order == HitOrder::Oldest { "ASC" } else { "DESC" }
    }
}

/// Reads a candidate from its number, lane, depth, time and score in millionths.
pub(crate) fn read_candidate(mut row: SqlRow) -> Result<Candidate> {
    let (number, lane, depth) = (row.integer()?, row.int()?, row.integer()?);
    let (at, score) = (Millis(row.int()?), row.int()? as f64 / 1e6);
    Ok(Candidate { number, lane, depth, at, score })
}

/// Returns an SQL expression: the number of rows in `table` whose columns differ from those of their message.
pub(crate) fn count_mismatches(table: &str) -> String {
    let numbers = Role::NAMES.map(|(name, role)| format!("WHEN '{name}' THEN {}", role_number(role)));
    let numbers = numbers.join(" ");
    format!(
        "(SELECT count(*) FROM {table} i LEFT JOIN nodes n ON n.number = i.number WHERE n.number IS NULL \
         OR n.lane <> i.lane OR n.depth <> i.depth OR n.at <> i.at OR i.role <> CASE n.role {numbers} ELSE 4 END)"
    )
}

/// Runs a SELECT of words and returns up to `limit` of them, the shortest first.
pub(crate) fn shortest_words(
    sql: &mut dyn Sql,
    select: &str,
    values: &[SqlValue<'_>],
    limit: usize,
) -> Result<Vec<String>> {
    let n = values.len();
    let text = format!(
        "SELECT word FROM ({select} LIMIT ${}) w ORDER BY octet_length(word), word LIMIT ${}",
        n + 1,
        n + 2
    );
    let limits = [SqlValue::Int(MAX_SORTED_WORDS), SqlValue::limit(limit)];
    sql.query(&text, &[values, &limits].concat())?.into_iter().map(|mut row| row.text()).collect()
}

/// Returns up to `limit` words of the vocabulary that match a pattern, the shortest first.
fn matching_words(
    sql: &mut dyn Sql,
    index: &dyn Index,
    pattern: &WordPattern,
    limit: usize,
) -> Result<Vec<String>> {
    // Words are letters and digits, so LIKE needs no escaping.
    match pattern {
        WordPattern::Exact(word) => {
            let text = "SELECT word FROM vocabulary WHERE word = $1";
            shortest_words(sql, text, &[SqlValue::Text(word)], limit)
        }
        WordPattern::StartsWith(part) => {
            // U+10FFFF sorts after every word with this prefix.
            let end = format!("{part}\u{10ffff}");
            let text = "SELECT word FROM vocabulary WHERE word >= $1 AND word < $2";
            shortest_words(sql, text, &[SqlValue::Text(part), SqlValue::Text(&end)], limit)
        }
        WordPattern::EndsWith(part) => index.words_with_part(sql, part, &format!("%{part}"), limit),
        WordPattern::Contains(part) => index.words_with_part(sql, part, &format!("%{part}%"), limit),
    }
}

/// Indexes the next batch of pending messages, and returns their number.
pub(crate) fn index_pending(sql: &mut dyn Sql, index: &dyn Index) -> Result<usize> {
    if !index.try_lock(sql)? {
        return Ok(0);
    }
    let pending = index.pending(sql, INDEX_BATCH)?;
    let n = pending.len();
    if n > 0 {
        let (entries, vocabulary) = tokenize(pending);
        index.add(sql, &entries, &vocabulary)?;
    }
    Ok(n)
}

/// Returns whether there are messages that are not indexed.
pub(crate) fn has_pending(sql: &mut dyn Sql, index: &dyn Index) -> Result<bool> {
    Ok(!index.pending(sql, 1)?.is_empty())
}

/// Rebuilds the index from the messages.
pub(crate) fn rebuild(sql: &mut dyn Sql, index: &dyn Index) -> Result<()> {
    index.clear(sql)?;
    while index_pending(sql, index)? == INDEX_BATCH {}
    Ok(())
}

/// Removes messages from the index, before they are deleted from the store.
pub(crate) fn remove_messages(
    sql: &mut dyn Sql,
    index: &dyn Index,
    removed: Vec<StoredMessage>,
) -> Result<()> {
    let (entries, vocabulary) = tokenize(removed);
    index.remove(sql, &entries, &vocabulary)
}

/// Splits messages into words; returns the distinct words for the vocabulary, too.
fn tokenize(messages: Vec<StoredMessage>) -> (Vec<IndexEntry>, BTreeSet<String>) {
    // Most words repeat, so collect them in a hash set and sort them once.
    let mut vocabulary = HashSet::new();
    let mut entries = Vec::with_capacity(messages.len());
    for stored in messages {
        let text = message_text(&stored.json);
        let mut words = String::with_capacity(text.len());
        for_each_word(&text, |_, word| {
            if !vocabulary.contains(word) && !is_single_char_word(word) {
                vocabulary.insert(word.to_owned());
            }
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        });
        entries.push(IndexEntry { stored, words });
    }
    (entries, vocabulary.into_iter().collect())
}

/// Searches a database.
pub(crate) fn search(sql: &mut dyn Sql, index: &dyn Index, spec: &SearchSpec) -> Result<SearchHits> {
    let mut collector = HitCollector::new(spec);
    let Some(mut numbers) = number_range(sql, spec)? else { return Ok(collector.finish(false)) };
    if spec.limit == 0 || spec.query.is_empty() {
        return Ok(collector.finish(false));
    }
    // Read the unindexed messages first: a message indexed in between is then found twice instead of not at all.
    let unindexed = UnindexedMessages::read(sql, index, spec)?;
    let query = spec.query.expand(|pattern, limit| {
        let mut matching = matching_words(sql, index, pattern, limit)?;
        matching.extend(unindexed.index.matching_words(pattern, limit));
        matching.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
        matching.dedup();
        matching.truncate(limit);
        Ok::<_, StoreError>(matching)
    })?;
    let mut unindexed = unindexed.candidates(&query, spec);
    let mut owners = OwnerLookup::new(sql, spec)?;
    let mut is_bounded = query.is_truncated;
    let mut is_ranked = spec.order == HitOrder::Best;
    loop {
        // Lineages that already have a hit need no other. After the first round, candidates are not ranked.
        let excluded_lanes =
            if spec.is_one_per_lineage { owners.finished_lanes(&collector) } else { Vec::new() };
        let filter = CandidateFilter {
            spec,
            numbers: numbers.clone(),
            excluded_lanes: &excluded_lanes,
            is_ranked,
            limit: MAX_RANKED,
        };
        let (mut candidates, has_scores) = index.candidates(sql, &query, &filter)?;
        is_bounded |= is_ranked && !has_scores;
        is_ranked &= !spec.is_one_per_lineage;
        let is_last = candidates.len() < MAX_RANKED;
        is_bounded |= !is_last;
        match spec.order {
            HitOrder::Oldest => {
                numbers.start = candidates.iter().map(|found| found.number as i64 + 1).max().unwrap_or(0);
            }
            HitOrder::Best | HitOrder::Newest => {
                numbers.end = candidates.iter().map(|found| found.number as i64).min().unwrap_or(0);
            }
        }
        // Unindexed messages are the newest, so in the order of age they follow all indexed ones.
        if spec.order != HitOrder::Oldest || is_last {
            candidates.retain(|found| unindexed.iter().all(|other| other.number != found.number));
            candidates.append(&mut unindexed);
        }
        sort(&mut candidates, spec.order);
        for found in candidates {
            if collector.is_done() {
                break;
            }
            let ownership = owners.owners_of(sql, &found)?;
            collector.offer(found.score, ownership, || match chain::node_by_number(sql, found.number) {
                // Skip a message whose predecessor is missing, and show the other hits.
                Err(StoreError::Corrupt(_)) => Ok(None),
                node => node,
            })?;
        }
        if collector.is_done() || is_last {
            return Ok(collector.finish(is_bounded));
        }
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
}

impl UnindexedMessages {
    fn read(sql: &mut dyn Sql, index: &dyn Index, spec: &SearchSpec) -> Result<UnindexedMessages> {
        let mut unindexed = UnindexedMessages { index: MemoryIndex::default(), messages: HashMap::new() };
        for stored in index.pending(sql, usize::MAX)? {
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

/// Finds the owners of candidates, with a cache of the sessions on each lane.
struct OwnerLookup<'a> {
    spec: &'a SearchSpec,
    /// The lanes of the caller's session with their depths.
    caller_lanes: Vec<(i64, Range<u32>)>,
    /// For each lane, the sessions that contain messages of it, each with the last depth that it contains.
    lanes: HashMap<i64, Vec<(u32, SessionRow)>>,
}

impl<'a> OwnerLookup<'a> {
    fn new(sql: &mut dyn Sql, spec: &'a SearchSpec) -> Result<OwnerLookup<'a>> {
        let caller_tip = match &spec.live {
            Some(live) => tables::session(sql, &live.session)?.and_then(|session| session.tip_position),
            None => None,
        };
        let caller_lanes = caller_tip
            .map_or(Ok(Vec::new()), |place| chain::lane_ranges(sql, place.lane, 0..place.depth + 1))?;
        Ok(OwnerLookup { spec, caller_lanes, lanes: HashMap::new() })
    }

    /// Returns the cached lanes whose sessions all belong to lineages that already had a candidate.
    fn finished_lanes(&self, collector: &HitCollector) -> Vec<i64> {
        let is_done = |rows: &[(u32, SessionRow)]| rows.iter().all(|(_, row)| collector.has_seen(&row.root));
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

/// Returns the sessions that contain messages of a lane, the oldest first, each with the last depth that it contains.
fn sessions_on_lane(sql: &mut dyn Sql, lane: i64) -> Result<Vec<(u32, SessionRow)>> {
    const TEXT: &str = concat!(
        "WITH RECURSIVE sharing (lane, last) AS (SELECT lane, 4294967295 FROM lanes WHERE lane = $1 \
         UNION ALL SELECT l.lane, CASE WHEN l.start <= sharing.last THEN l.start - 1 ELSE sharing.last END \
         FROM lanes l JOIN sharing ON l.parent = sharing.lane) SELECT sharing.last, ",
        session_columns!(),
        // CROSS JOIN fixes the join order: SQLite would otherwise scan all sessions first.
        " FROM sharing CROSS JOIN sessions s CROSS JOIN nodes n \
         WHERE s.lane = sharing.lane AND n.number = s.tip AND sharing.last >= 0 ORDER BY s.started_at, s.id"
    );
    let read = |mut row: SqlRow| {
        let last: u32 = row.integer()?;
        let session = read_session(row)?.row;
        Ok((last.min(session.n_messages.saturating_sub(1)), session))
    };
    sql.query(TEXT, &[SqlValue::Int(lane)])?.into_iter().map(read).collect()
}
