//! The full text index of a database: the interface, and the SQL that SQLite and PostgreSQL share.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use crate::database::sql::{Sql, SqlRow, SqlValue};
use crate::database::tables::StoredMessage;
use crate::model::{Millis, Role};
use crate::search::query::{ExpandedQuery, WordPattern};
use crate::search::spec::{Candidate, HitOrder, SearchSpec};
use crate::search::text::message_text::message_text;
use crate::search::text::words::{for_each_word, is_single_char_word};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

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

    /// Returns up to `limit` messages that are not indexed: the newest, in ascending order of their numbers.
    fn newest_pending(&self, sql: &mut dyn Sql, limit: usize) -> Result<Vec<StoredMessage>>;

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
pub(crate) fn matching_words(
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
