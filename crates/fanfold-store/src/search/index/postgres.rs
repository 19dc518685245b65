//! Full text in PostgreSQL, by its own vectors of words.
//!
//! The vectors are written from our words, so that the same words are found as elsewhere. PostgreSQL keeps the first
//! 16,383 places and 256 of each word; where a message has more, what it may have is found and then read.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::sql::{Row, Sql, SqlValue};
use crate::database::tables::{self, StoredMessage, read_node};
use crate::model::Millis;
use crate::search::index::lookup::{CandidateFilter, Index, IndexEntry, MAX_SORTED_WORDS, role_number};
use crate::search::index::memory::MemoryIndex;
use crate::search::query::{ExpandedGroup, ExpandedQuery, Phrase, WordPattern};
use crate::search::spec::{Candidate, HitOrder};
use crate::search::text::words::is_single_char_word;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// Full text in PostgreSQL.
pub(crate) struct PostgresIndex;

/// Who indexes holds this: one is enough. Any number does; these are the letters "inde".
const INDEX_LOCK: i64 = 0x696e_6465;

/// The last place that PostgreSQL tells from others.
const MAX_POSITION: usize = 16_383;
/// So many places of one word are kept.
const MAX_POSITIONS_PER_WORD: usize = 255;
/// A vector is no longer than a megabyte; this leaves room for what it needs beside its words.
const MAX_VECTOR_BYTES: usize = 900_000;

impl Index for PostgresIndex {
    fn try_lock(&self, sql: &mut dyn Sql) -> Result<bool> {
        let text = "SELECT CAST(pg_try_advisory_xact_lock($1) AS INT)";
        let row = sql.query(text, &[SqlValue::Int(INDEX_LOCK)])?.into_iter().next();
        Ok(row.map(|mut row| row.int()).transpose()? == Some(1))
    }

    fn pending(&self, sql: &mut dyn Sql, limit: usize) -> Result<Vec<StoredMessage>> {
        let text = "SELECT n.number, n.id, n.lane, n.depth, n.role, n.at, n.json FROM pending p \
             JOIN nodes n ON n.number = p.number ORDER BY p.number LIMIT $1";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        sql.query(text, &[SqlValue::Int(limit)])?.into_iter().map(read_node).collect()
    }

    fn add(&self, sql: &mut dyn Sql, texts: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()> {
        for IndexEntry { stored, words } in texts {
            let (vector, exactness) = vector(words);
            let text = "INSERT INTO texts (number, lane, depth, role, at, exactness, words) \
                 VALUES ($1, $2, $3, $4, $5, $6, CAST(CAST($7 AS TEXT) AS TSVECTOR)) ON CONFLICT (number) DO NOTHING";
            let number = SqlValue::Int(stored.position.number);
            let values = [
                number,
                SqlValue::Int(stored.position.lane),
                SqlValue::Int(stored.position.depth.into()),
                SqlValue::Int(role_number(stored.role)),
                SqlValue::Int(stored.at.0),
                SqlValue::Int(exactness),
                SqlValue::Text(&vector),
            ];
            sql.execute(text, &values)?;
            sql.execute("DELETE FROM pending WHERE number = $1", &[number])?;
        }
        let words: Vec<&str> = vocabulary_words(vocabulary);
        let text = "INSERT INTO vocabulary (word, thirds) SELECT w, ARRAY(SELECT DISTINCT substr(w, i, 3) \
             FROM generate_series(1, char_length(w) - 2) i) FROM unnest(string_to_array($1, ' ')) w \
             ON CONFLICT (word) DO NOTHING";
        sql.execute(text, &[SqlValue::Text(&words.join(" "))])?;
        Ok(())
    }

    fn remove(&self, sql: &mut dyn Sql, texts: &[IndexEntry], vocabulary: &BTreeSet<String>) -> Result<()> {
        for IndexEntry { stored, .. } in texts {
            let number = [SqlValue::Int(stored.position.number)];
            sql.execute("DELETE FROM pending WHERE number = $1", &number)?;
            sql.execute("DELETE FROM texts WHERE number = $1", &number)?;
        }
        let words: Vec<&str> = vocabulary_words(vocabulary);
        // A message with more words than its vector may have any word.
        let text = "DELETE FROM vocabulary v WHERE v.word = ANY (string_to_array($1, ' ')) \
             AND NOT EXISTS (SELECT 1 FROM texts t WHERE t.words @@ CAST('''' || v.word || '''' AS TSQUERY)) \
             AND NOT EXISTS (SELECT 1 FROM texts t WHERE t.exactness > 1)";
        sql.execute(text, &[SqlValue::Text(&words.join(" "))])?;
        Ok(())
    }

    fn n_inconsistent(&self, sql: &mut dyn Sql) -> Result<i64> {
        let role = "CASE n.role WHEN 'system' THEN 0 WHEN 'user' THEN 1 WHEN 'assistant' THEN 2 WHEN 'tool' THEN 3 \
             ELSE 4 END";
        let text = format!(
            "SELECT (SELECT count(*) FROM texts t LEFT JOIN nodes n ON n.number = t.number WHERE n.number IS NULL \
             OR n.lane <> t.lane OR n.depth <> t.depth OR n.at <> t.at OR {role} <> t.role) \
             + (SELECT count(*) FROM nodes n LEFT JOIN texts t ON t.number = n.number \
             LEFT JOIN pending p ON p.number = n.number WHERE t.number IS NULL AND p.number IS NULL)"
        );
        sql.query(&text, &[])?.into_iter().next().map_or(Ok(0), |mut row| row.int())
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

    fn matching_words(&self, sql: &mut dyn Sql, like: &WordPattern, limit: usize) -> Result<Vec<String>> {
        let limit = SqlValue::Int(i64::try_from(limit).unwrap_or(i64::MAX));
        let order = "ORDER BY octet_length(word), word LIMIT";
        let rows = match like {
            WordPattern::Exact(word) => {
                sql.query("SELECT word FROM vocabulary WHERE word = $1", &[SqlValue::Text(word)])?
            }
            WordPattern::StartsWith(part) => {
                let end = format!("{part}\u{10ffff}");
                let text = format!(
                    "SELECT word FROM (SELECT word FROM vocabulary WHERE word >= $1 AND word < $2 LIMIT $3) w \
                     {order} $4"
                );
                let values =
                    [SqlValue::Text(part), SqlValue::Text(&end), SqlValue::Int(MAX_SORTED_WORDS), limit];
                sql.query(&text, &values)?
            }
            // Words are letters and digits: none of them means something to LIKE.
            WordPattern::EndsWith(part) | WordPattern::Contains(part) => {
                let end = if matches!(like, WordPattern::EndsWith(_)) { "" } else { "%" };
                let pattern = format!("%{part}{end}");
                let letters: Vec<char> = part.chars().collect();
                let thirds: Vec<String> = letters.windows(3).map(|third| third.iter().collect()).collect();
                let text = format!(
                    "SELECT word FROM (SELECT word FROM vocabulary WHERE thirds @> string_to_array($1, ' ') \
                     AND word LIKE $2 LIMIT $3) w {order} $4"
                );
                let thirds = thirds.join(" ");
                let values = [
                    SqlValue::Text(&thirds),
                    SqlValue::Text(&pattern),
                    SqlValue::Int(MAX_SORTED_WORDS),
                    limit,
                ];
                sql.query(&text, &values)?
            }
        };
        rows.into_iter().map(|mut row| row.text()).collect()
    }

    fn candidates(
        &self,
        sql: &mut dyn Sql,
        query: &ExpandedQuery,
        wanted: &CandidateFilter,
    ) -> Result<(Vec<Candidate>, bool)> {
        if query.alternatives.is_empty() || wanted.numbers.is_empty() {
            return Ok((Vec::new(), true));
        }
        let exact = match_expression(query, Exactness::Positions);
        let mut found: BTreeMap<i64, Candidate> = BTreeMap::new();
        let score = if wanted.is_ranked { "CAST(ts_rank_cd(words, q) * 1000000 AS BIGINT)" } else { "0" };
        let some = format!(
            "SELECT number, lane, depth, at, {score} FROM texts, CAST(CAST($1 AS TEXT) AS TSQUERY) q"
        );
        for candidate in query_candidates(sql, &format!("{some} WHERE words @@ q"), &exact, wanted)? {
            found.insert(candidate.number as i64, candidate);
        }
        let loose = match_expression(query, Exactness::Words);
        let test = format!("{some} WHERE exactness > 0 AND (exactness > 1 OR words @@ q)");
        for candidate in query_candidates(sql, &test, &loose, wanted)? {
            let number = candidate.number as i64;
            let Some(stored) = tables::node_by_number(sql, number)? else { continue };
            let mut index = MemoryIndex::default();
            index.add(candidate.number, &stored.json);
            let has_it = !index.candidates(query).is_empty();
            if has_it {
                found.entry(number).or_insert(candidate);
            } else {
                found.remove(&number);
            }
        }
        let found = found.into_values();
        let found = match wanted.spec.order {
            HitOrder::Oldest => found.take(wanted.limit).collect(),
            HitOrder::Best | HitOrder::Newest => found.rev().take(wanted.limit).collect(),
        };
        Ok((found, true))
    }
}

/// Runs a query for messages with the rest of what is wanted of them.
fn query_candidates(
    sql: &mut dyn Sql,
    test: &str,
    expression: &str,
    wanted: &CandidateFilter,
) -> Result<Vec<Candidate>> {
    let find = wanted.spec;
    let order = if find.order == HitOrder::Oldest { "ASC" } else { "DESC" };
    let text = format!(
        "{test} AND number >= $2 AND number < $3 AND at >= $4 AND at < $5 \
         AND ($6 = '' OR role = ANY (CAST(string_to_array($6, ' ') AS BIGINT[]))) \
         AND ($7 = '' OR lane <> ALL (CAST(string_to_array($7, ' ') AS BIGINT[]))) ORDER BY number {order} LIMIT $8"
    );
    let listed = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(" ");
    let roles = listed(&find.roles.iter().map(|role| role_number(*role)).collect::<Vec<_>>());
    let lanes = listed(wanted.excluded_lanes);
    let values = [
        SqlValue::Text(expression),
        SqlValue::Int(wanted.numbers.start),
        SqlValue::Int(wanted.numbers.end),
        SqlValue::Int(find.since.map_or(i64::MIN, |since| since.0)),
        SqlValue::Int(find.before.map_or(i64::MAX, |before| before.0)),
        SqlValue::Text(&roles),
        SqlValue::Text(&lanes),
        SqlValue::Int(i64::try_from(wanted.limit).unwrap_or(i64::MAX)),
    ];
    let read = |mut row: Row| {
        let (number, lane, depth) = (row.integer()?, row.int()?, row.integer()?);
        let (at, score) = (Millis(row.int()?), row.int()? as f64 / 1e6);
        Ok(Candidate { number, lane, depth, at, score })
    };
    sql.query(&text, &values)?.into_iter().map(read).collect()
}

fn vocabulary_words(vocabulary: &BTreeSet<String>) -> Vec<&str> {
    vocabulary.iter().map(String::as_str).filter(|word| !is_single_char_word(word)).collect()
}

/// The words of a message as PostgreSQL reads them, and how exact that is.
fn vector(words: &str) -> (String, i64) {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut n_words = 0;
    for word in words.split(' ').filter(|word| !word.is_empty()) {
        n_words += 1;
        places.entry(word).or_default().push(n_words);
    }
    let n_bytes: usize = places.iter().map(|(word, places)| word.len() + 8 + 2 * places.len()).sum();
    let is_long = n_bytes > MAX_VECTOR_BYTES;
    let mut exactness = i64::from(is_long || n_words > MAX_POSITION);
    let mut vector = String::new();
    let mut n_written = 0;
    for (word, mut places) in places {
        n_written += word.len() + 8;
        if n_written > MAX_VECTOR_BYTES {
            return (vector, 2);
        }
        vector.push_str(&format!("'{word}'"));
        if is_long {
            vector.push(' ');
            continue;
        }
        if places.len() > MAX_POSITIONS_PER_WORD {
            places.truncate(MAX_POSITIONS_PER_WORD);
            exactness = 1;
        }
        places.retain(|place| *place < MAX_POSITION);
        for (i, place) in places.iter().enumerate() {
            vector.push_str(&format!("{}{place}", if i == 0 { ':' } else { ',' }));
        }
        vector.push(' ');
    }
    (vector, exactness)
}

/// Of what a query asks, what is looked for in vectors.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exactness {
    /// Words behind one another.
    Positions,
    /// All the words, wherever they stand.
    Words,
}

/// A query as PostgreSQL reads it. Words are letters and digits alone, so nothing in them needs care.
fn match_expression(query: &ExpandedQuery, exactness: Exactness) -> String {
    let between = if exactness == Exactness::Positions { " <-> " } else { " & " };
    let phrase = |phrase: &Phrase| {
        let words: Vec<String> = phrase.words.iter().map(|word| format!("'{word}'")).collect();
        format!("({})", words.join(between))
    };
    let term =
        |phrases: &Vec<Phrase>| format!("({})", phrases.iter().map(phrase).collect::<Vec<_>>().join(" | "));
    let group = |group: &ExpandedGroup| {
        let mut terms: Vec<String> = group.required.iter().map(term).collect();
        if exactness == Exactness::Positions {
            terms.extend(group.excluded.iter().map(|phrases| format!("!{}", term(phrases))));
        }
        format!("({})", terms.join(" & "))
    };
    query.alternatives.iter().map(group).collect::<Vec<_>>().join(" | ")
}
