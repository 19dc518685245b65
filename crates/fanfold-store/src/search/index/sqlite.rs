//! The full text index in SQLite, based on FTS5.

use std::collections::{BTreeSet, HashMap};

use crate::database::sql::{Sql, SqlValue, query_row};
use crate::database::tables::{self, SELECT_MESSAGES, StoredMessage, read_node};
use crate::search::index::memory::{MemoryIndex, WordStatistics};
use crate::search::index::sql_index::{
    CandidateFilter, Index, IndexEntry, count_mismatches, read_candidate, shortest_words,
};
use crate::search::query::{ExpandedGroup, ExpandedQuery, Phrase};
use crate::search::spec::Candidate;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The full text index in SQLite.
pub(crate) struct SqliteIndex;

/// FTS5 reads all postings of each word to rank one message. It ranks queries up to this number of postings.
const MAX_POSTINGS_READ: f64 = 60_000.0;
/// FTS5 ranks queries with up to this number of phrases; the frequency of up to this number of words is estimated.
const MAX_WORDS_COUNTED: usize = 16;
/// The number of messages that are read and ranked in memory for other queries.
const MAX_MESSAGES_SCORED: usize = 200;
/// The frequency of a word is estimated from this number of newest messages that contain it.
const SAMPLE_SIZE: i64 = 300;

impl Index for SqliteIndex {
    fn try_lock(&self, _sql: &mut dyn Sql) -> Result<bool> {
        // SQLite runs one writing transaction at a time.
        Ok(true)
    }

    fn pending(&self, sql: &mut dyn Sql, limit: usize) -> Result<Vec<StoredMessage>> {
        pending(sql, "ASC", limit)
    }

    fn newest_pending(&self, sql: &mut dyn Sql, limit: usize) -> Result<Vec<StoredMessage>> {
        let mut newest = pending(sql, "DESC", limit)?;
        newest.reverse();
        Ok(newest)
    }

    fn add(&self, sql: &mut dyn Sql, entries: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()> {
        for entry in entries {
            let values = entry.values();
            let words = [values[0], SqlValue::Text(&entry.words)];
            sql.execute("INSERT INTO texts (rowid, words) VALUES ($1, $2)", &words)?;
            let text = "INSERT INTO indexed (number, lane, depth, role, at) VALUES ($1, $2, $3, $4, $5)";
            sql.execute(text, &values)?;
        }
        for word in vocabulary {
            let text =
                "INSERT INTO vocabulary (word) VALUES ($1) ON CONFLICT (word) DO NOTHING RETURNING key";
            // A word of up to three letters is its own only trigram, so it needs no entry.
            if let Some(mut new) = query_row(sql, text, &[SqlValue::Text(word)])?
                && has_parts(word)
            {
                let values = [SqlValue::Int(new.int()?), SqlValue::Text(word)];
                sql.execute("INSERT INTO parts (rowid, word) VALUES ($1, $2)", &values)?;
            }
        }
        let last = entries.iter().map(|entry| entry.stored.position.number).max().unwrap_or(0);
        let mark = "INSERT INTO marks (name, value) VALUES ('indexed', $1) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE marks.value < excluded.value";
        sql.execute(mark, &[SqlValue::Int(last)])?;
        Ok(())
    }

    fn remove(&self, sql: &mut dyn Sql, entries: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()> {
        for IndexEntry { stored, .. } in entries {
            let number = [SqlValue::Int(stored.position.number)];
            if sql.execute("DELETE FROM indexed WHERE number = $1", &number)? > 0 {
                sql.execute("DELETE FROM texts WHERE rowid = $1", &number)?;
            }
        }
        for word in vocabulary {
            let quoted = format!("\"{word}\"");
            let text = "SELECT rowid FROM texts WHERE texts MATCH $1 LIMIT 1";
            if query_row(sql, text, &[SqlValue::Text(&quoted)])?.is_some() {
                continue;
            }
            let text = "DELETE FROM vocabulary WHERE word = $1 RETURNING key";
            if let Some(mut deleted) = query_row(sql, text, &[SqlValue::Text(word)])?
                && has_parts(word)
            {
                let values = [SqlValue::Int(deleted.int()?), SqlValue::Text(word)];
                sql.execute("INSERT INTO parts (parts, rowid, word) VALUES ('delete', $1, $2)", &values)?;
            }
        }
        Ok(())
    }

    fn n_inconsistent(&self, sql: &mut dyn Sql) -> Result<i64> {
        let text = format!(
            "SELECT {} + (SELECT count(*) FROM nodes n LEFT JOIN indexed i ON i.number = n.number \
             WHERE i.number IS NULL \
             AND n.number <= coalesce((SELECT value FROM marks WHERE name = 'indexed'), 0)) \
             + (SELECT count(*) FROM indexed i LEFT JOIN texts_docsize d ON d.id = i.number WHERE d.id IS NULL)",
            count_mismatches("indexed")
        );
        query_row(sql, &text, &[])?.map_or(Ok(0), |mut row| row.int())
    }

    fn clear(&self, sql: &mut dyn Sql) -> Result<()> {
        for text in [
            "INSERT INTO texts (texts) VALUES ('delete-all')",
            "INSERT INTO parts (parts) VALUES ('delete-all')",
            "DELETE FROM indexed",
            "DELETE FROM vocabulary",
            "DELETE FROM marks WHERE name = 'indexed'",
        ] {
            sql.execute(text, &[])?;
        }
        Ok(())
    }

    fn words_with_part(
        &self,
        sql: &mut dyn Sql,
        _part: &str,
        like: &str,
        limit: usize,
    ) -> Result<Vec<String>> {
        shortest_words(sql, "SELECT word FROM parts WHERE word LIKE $1", &[SqlValue::Text(like)], limit)
    }

    fn candidates(
        &self,
        sql: &mut dyn Sql,
        query: &ExpandedQuery,
        filter: &CandidateFilter,
    ) -> Result<(Vec<Candidate>, bool)> {
        if query.alternatives.is_empty() || filter.numbers.is_empty() {
            return Ok((Vec::new(), true));
        }
        let statistics = if filter.is_ranked { Some(word_statistics(sql, query)?) } else { None };
        let n_read: f64 = statistics.iter().flat_map(|statistics| statistics.n_with.values()).sum();
        let is_cheap = n_read <= MAX_POSTINGS_READ && query.phrases().count() <= MAX_WORDS_COUNTED;
        let score = match &statistics {
            Some(_) if is_cheap => "CAST(bm25(texts) * -1000000 AS INTEGER)",
            _ => "0",
        };
        let mut found = query_candidates(sql, query, filter, score)?;
        let Some(statistics) = statistics.filter(|_| !is_cheap) else { return Ok((found, true)) };
        let mut index = MemoryIndex::for_query(query, statistics);
        for candidate in found.iter().take(MAX_MESSAGES_SCORED) {
            if let Some(stored) = tables::node_by_number(sql, candidate.number as i64)? {
                index.add(candidate.number, &stored.json);
            }
        }
        let scores: HashMap<u64, f64> = index.candidates(query).into_iter().collect();
        for candidate in &mut found {
            candidate.score = scores.get(&candidate.number).copied().unwrap_or(0.0);
        }
        let is_all = found.len() <= MAX_MESSAGES_SCORED;
        Ok((found, is_all))
    }
}

/// Returns the first messages that are not indexed in a direction.
fn pending(sql: &mut dyn Sql, direction: &str, limit: usize) -> Result<Vec<StoredMessage>> {
    // Numbers are allocated by one writing transaction at a time, so no number below the mark appears later.
    let text = format!(
        "{SELECT_MESSAGES} WHERE number > coalesce((SELECT value FROM marks WHERE name = 'indexed'), 0) \
         ORDER BY number {direction} LIMIT $1"
    );
    sql.query(&text, &[SqlValue::limit(limit)])?.into_iter().map(read_node).collect()
}

/// Runs the query and the filter, and computes scores with the SQL expression `score`.
fn query_candidates(
    sql: &mut dyn Sql,
    query: &ExpandedQuery,
    filter: &CandidateFilter,
    score: &str,
) -> Result<Vec<Candidate>> {
    let roles = in_list("AND i.role IN", &filter.roles());
    // FTS5 returns rows in order of their number, so a common word costs only the rows up to the limit.
    let text = format!(
        "SELECT t.rowid, i.lane, i.depth, i.at, {score} \
         FROM texts t CROSS JOIN indexed i ON i.number = t.rowid \
         WHERE texts MATCH $1 AND t.rowid >= $2 AND t.rowid < $3 AND i.at >= $4 AND i.at < $5 {roles}\
         AND ($6 = '[]' OR i.lane NOT IN (SELECT value FROM json_each($6))) \
         ORDER BY t.rowid {} LIMIT $7",
        filter.direction()
    );
    let expression = match_expression(query);
    let lanes = format!("{:?}", filter.excluded_lanes);
    let rest = [SqlValue::Text(&lanes), SqlValue::limit(filter.limit)];
    sql.query(&text, &filter.values(&expression, &rest))?.into_iter().map(read_candidate).collect()
}

/// Estimates how many messages contain each word of a query, from the density of the newest of them. Only the first
/// words of a long query are estimated.
fn word_statistics(sql: &mut dyn Sql, query: &ExpandedQuery) -> Result<WordStatistics> {
    let last = "SELECT coalesce((SELECT max(number) FROM indexed), 0)";
    let n_messages = query_row(sql, last, &[])?.map_or(Ok(0), |mut row| row.int())?;
    let words: BTreeSet<&String> = query.phrases().flat_map(|phrase| &phrase.words).collect();
    let mut n_with = HashMap::new();
    for word in words.into_iter().take(MAX_WORDS_COUNTED) {
        let quoted = format!("\"{word}\"");
        let text = "SELECT rowid FROM texts WHERE texts MATCH $1 ORDER BY rowid DESC LIMIT 1 OFFSET $2";
        let seen = query_row(sql, text, &[SqlValue::Text(&quoted), SqlValue::Int(SAMPLE_SIZE)])?;
        let n = match seen.map(|mut row| row.int()).transpose()? {
            Some(number) => SAMPLE_SIZE as f64 * n_messages as f64 / (n_messages - number).max(1) as f64,
            None => SAMPLE_SIZE as f64 / 2.0,
        };
        n_with.insert(word.clone(), n);
    }
    Ok(WordStatistics { n_messages: n_messages as f64, n_with })
}

/// Returns a condition such as `AND i.role IN (1,2)`; empty if there are no numbers.
fn in_list(condition: &str, numbers: &[i64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(i64::to_string).collect();
    if numbers.is_empty() { String::new() } else { format!("{condition} ({}) ", numbers.join(",")) }
}

/// Returns whether a word has parts of three letters other than itself.
fn has_parts(word: &str) -> bool {
    word.chars().nth(3).is_some()
}

/// Returns a query in the syntax of FTS5. Words are letters and digits, so they need no escaping.
fn match_expression(query: &ExpandedQuery) -> String {
    let phrase = |phrase: &Phrase| format!("\"{}\"", phrase.words.join(" "));
    let term =
        |phrases: &Vec<Phrase>| format!("({})", phrases.iter().map(phrase).collect::<Vec<_>>().join(" OR "));
    let group = |group: &ExpandedGroup| {
        let required = group.required.iter().map(term).collect::<Vec<_>>().join(" AND ");
        if group.excluded.is_empty() {
            return format!("({required})");
        }
        let excluded = group.excluded.iter().map(term).collect::<Vec<_>>().join(" OR ");
        format!("(({required}) NOT ({excluded}))")
    };
    query.alternatives.iter().map(group).collect::<Vec<_>>().join(" OR ")
}
