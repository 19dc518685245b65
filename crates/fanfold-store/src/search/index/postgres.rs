//! The full text index in PostgreSQL, based on `tsvector`.
//!
//! The vectors are built from fanfold's own words, so that a search finds the same in every store. PostgreSQL
//! stores positions up to 16,383 and at most 256 per word. A message beyond these limits is matched loosely, and
//! then read to decide.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::sql::{Sql, SqlValue, query_row};
use crate::database::tables::{self, SELECT_MESSAGES, StoredMessage, read_node};
use crate::search::index::memory::MemoryIndex;
use crate::search::index::sql_index::{
    CandidateFilter, Index, IndexEntry, count_mismatches, read_candidate, shortest_words,
};
use crate::search::query::{ExpandedGroup, ExpandedQuery, Phrase};
use crate::search::spec::{Candidate, HitOrder};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The full text index in PostgreSQL.
pub(crate) struct PostgresIndex;

/// The advisory lock of the process that is indexing. The number is arbitrary: the letters "inde".
const INDEX_LOCK: i64 = 0x696e_6465;

/// PostgreSQL stores all later positions as this one.
const MAX_POSITION: usize = 16_383;
/// The maximum number of positions that are stored per word.
const MAX_POSITIONS_PER_WORD: usize = 255;
/// The size limit of a vector is 1 MB; this leaves room for its overhead.
const MAX_VECTOR_BYTES: usize = 900_000;

impl Index for PostgresIndex {
    fn try_lock(&self, sql: &mut dyn Sql) -> Result<bool> {
        let text = "SELECT CAST(pg_try_advisory_xact_lock($1) AS INT)";
        let row = sql.query(text, &[SqlValue::Int(INDEX_LOCK)])?.into_iter().next();
        Ok(row.map(|mut row| row.int()).transpose()? == Some(1))
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
            let (vector, exactness) = vector(&entry.words);
            let text = "INSERT INTO texts (number, lane, depth, role, at, exactness, words) \
                 VALUES ($1, $2, $3, $4, $5, $6, CAST(CAST($7 AS TEXT) AS TSVECTOR)) ON CONFLICT (number) DO NOTHING";
            let [number, lane, depth, role, at] = entry.values();
            let (exactness, vector) = (SqlValue::Int(exactness), SqlValue::Text(&vector));
            sql.execute(text, &[number, lane, depth, role, at, exactness, vector])?;
            sql.execute("DELETE FROM pending WHERE number = $1", &[number])?;
        }
        let words: Vec<&str> = vocabulary.iter().map(String::as_str).collect();
        let text = "INSERT INTO vocabulary (word, thirds) SELECT w, ARRAY(SELECT DISTINCT substr(w, i, 3) \
             FROM generate_series(1, char_length(w) - 2) i) FROM unnest(string_to_array($1, ' ')) w \
             ON CONFLICT (word) DO NOTHING";
        sql.execute(text, &[SqlValue::Text(&words.join(" "))])?;
        Ok(())
    }

    fn remove(&self, sql: &mut dyn Sql, entries: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()> {
        for IndexEntry { stored, .. } in entries {
            let number = [SqlValue::Int(stored.position.number)];
            sql.execute("DELETE FROM pending WHERE number = $1", &number)?;
            sql.execute("DELETE FROM texts WHERE number = $1", &number)?;
        }
        let words: Vec<&str> = vocabulary.iter().map(String::as_str).collect();
        // A message with `exactness` 2 may contain words that its vector lacks.
        let text = "DELETE FROM vocabulary v WHERE v.word = ANY (string_to_array($1, ' ')) \
             AND NOT EXISTS (SELECT 1 FROM texts t WHERE t.words @@ CAST('''' || v.word || '''' AS TSQUERY)) \
             AND NOT EXISTS (SELECT 1 FROM texts t WHERE t.exactness > 1)";
        sql.execute(text, &[SqlValue::Text(&words.join(" "))])?;
        Ok(())
    }

    fn n_inconsistent(&self, sql: &mut dyn Sql) -> Result<i64> {
        let text = format!(
            "SELECT {} + (SELECT count(*) FROM nodes n LEFT JOIN texts t ON t.number = n.number \
             LEFT JOIN pending p ON p.number = n.number WHERE t.number IS NULL AND p.number IS NULL)",
            count_mismatches("texts")
        );
        query_row(sql, &text, &[])?.map_or(Ok(0), |mut row| row.int())
    }

    fn clear(&self, sql: &mut dyn Sql) -> Result<()> {
        for text in [
            "DELETE FROM texts",
            "DELETE FROM vocabulary",
            "INSERT INTO pending SELECT number FROM nodes ON CONFLICT (number) DO NOTHING",
        ] {
            sql.execute(text, &[])?;
        }
        Ok(())
    }

    fn words_with_part(
        &self,
        sql: &mut dyn Sql,
        part: &str,
        like: &str,
        limit: usize,
    ) -> Result<Vec<String>> {
        let letters: Vec<char> = part.chars().collect();
        let trigrams: Vec<String> = letters.windows(3).map(|trigram| trigram.iter().collect()).collect();
        let text = "SELECT word FROM vocabulary WHERE thirds @> string_to_array($1, ' ') AND word LIKE $2";
        shortest_words(sql, text, &[SqlValue::Text(&trigrams.join(" ")), SqlValue::Text(like)], limit)
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
        let exact = match_expression(query, MatchMode::Phrases);
        let mut found: BTreeMap<i64, Candidate> = BTreeMap::new();
        let score = if filter.is_ranked { "CAST(ts_rank_cd(words, q) * 1000000 AS BIGINT)" } else { "0" };
        let select = format!(
            "SELECT number, lane, depth, at, {score} FROM texts, CAST(CAST($1 AS TEXT) AS TSQUERY) q"
        );
        for candidate in query_candidates(sql, &format!("{select} WHERE words @@ q"), &exact, filter)? {
            found.insert(candidate.number as i64, candidate);
        }
        let loose = match_expression(query, MatchMode::Words);
        let loose_select = format!("{select} WHERE exactness > 0 AND (exactness > 1 OR words @@ q)");
        for candidate in query_candidates(sql, &loose_select, &loose, filter)? {
            let number = candidate.number as i64;
            let Some(stored) = tables::node_by_number(sql, number)? else { continue };
            let mut index = MemoryIndex::default();
            index.add(candidate.number, &stored.json);
            let is_match = !index.candidates(query).is_empty();
            if is_match {
                found.entry(number).or_insert(candidate);
            } else {
                found.remove(&number);
            }
        }
        let found = found.into_values();
        let found = match filter.spec.order {
            HitOrder::Oldest => found.take(filter.limit).collect(),
            HitOrder::Best | HitOrder::Newest => found.rev().take(filter.limit).collect(),
        };
        Ok((found, true))
    }
}

/// Returns the first messages that are not indexed in a direction.
fn pending(sql: &mut dyn Sql, direction: &str, limit: usize) -> Result<Vec<StoredMessage>> {
    let text = format!(
        "{SELECT_MESSAGES} JOIN pending p ON p.number = n.number ORDER BY p.number {direction} LIMIT $1"
    );
    sql.query(&text, &[SqlValue::limit(limit)])?.into_iter().map(read_node).collect()
}

/// Runs a SELECT that matches an expression, with the conditions of the filter added.
fn query_candidates(
    sql: &mut dyn Sql,
    select: &str,
    expression: &str,
    filter: &CandidateFilter,
) -> Result<Vec<Candidate>> {
    let text = format!(
        "{select} AND number >= $2 AND number < $3 AND at >= $4 AND at < $5 \
         AND ($6 = '' OR role = ANY (CAST(string_to_array($6, ' ') AS BIGINT[]))) \
         AND ($7 = '' OR lane <> ALL (CAST(string_to_array($7, ' ') AS BIGINT[]))) ORDER BY number {} LIMIT $8",
        filter.direction()
    );
    let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    let (roles, lanes) = (list(&filter.roles()), list(filter.excluded_lanes));
    let rest = [SqlValue::Text(&roles), SqlValue::Text(&lanes), SqlValue::limit(filter.limit)];
    sql.query(&text, &filter.values(expression, &rest))?.into_iter().map(read_candidate).collect()
}

/// Returns the words of a message in the syntax of `tsvector`, and its `exactness`: 0 if complete, 1 if positions
/// were dropped, 2 if words were dropped.
fn vector(words: &str) -> (String, i64) {
    let mut positions_by_word: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut n_words = 0;
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        n_words += 1;
        positions_by_word.entry(word).or_default().push(n_words);
    }
    let n_bytes: usize =
        positions_by_word.iter().map(|(word, positions)| word.len() + 8 + 2 * positions.len()).sum();
    let is_too_long = n_bytes > MAX_VECTOR_BYTES;
    let mut exactness = i64::from(is_too_long || n_words > MAX_POSITION);
    let mut vector = String::new();
    let mut n_written = 0;
    for (word, mut positions) in positions_by_word {
        n_written += word.len() + 8;
        if n_written > MAX_VECTOR_BYTES {
            return (vector, 2);
        }
        vector.push_str(&format!("'{word}'"));
        if is_too_long {
            vector.push(' ');
            continue;
        }
        if positions.len() > MAX_POSITIONS_PER_WORD {
            positions.truncate(MAX_POSITIONS_PER_WORD);
            exactness = 1;
        }
        positions.retain(|position| *position < MAX_POSITION);
        for (i, position) in positions.iter().enumerate() {
            vector.push_str(&format!("{}{position}", if i == 0 { ':' } else { ',' }));
        }
        vector.push(' ');
    }
    (vector, exactness)
}

/// How a query is matched with vectors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchMode {
    /// Phrases by their positions.
    Phrases,
    /// The words of phrases at any position; excluded terms are ignored.
    Words,
}

/// Returns a query in the syntax of `tsquery`. Words are letters and digits, so they need no escaping.
fn match_expression(query: &ExpandedQuery, mode: MatchMode) -> String {
    let operator = if mode == MatchMode::Phrases { " <-> " } else { " & " };
    let phrase = |phrase: &Phrase| {
        let words: Vec<String> = phrase.words.iter().map(|word| format!("'{word}'")).collect();
        format!("({})", words.join(operator))
    };
    let term =
        |phrases: &Vec<Phrase>| format!("({})", phrases.iter().map(phrase).collect::<Vec<_>>().join(" | "));
    let group = |group: &ExpandedGroup| {
        let mut terms: Vec<String> = group.required.iter().map(term).collect();
        if mode == MatchMode::Phrases {
            terms.extend(group.excluded.iter().map(|phrases| format!("!{}", term(phrases))));
        }
        format!("({})", terms.join(" & "))
    };
    query.alternatives.iter().map(group).collect::<Vec<_>>().join(" | ")
}
