//! Full text in SQLite, by FTS5.

use std::collections::{BTreeSet, HashMap};

use super::find::{Candidate, Order};
use super::lookup::{Index, MOST_SORTED, Text, Wanted, role_number};
use super::memory::{MemoryIndex, Sample};
use super::query::{Expanded, ExpandedAll, Like, Phrase};
use super::words::stands_alone;
use crate::session::Millis;
use crate::sql::{Row, Sql, Value, row};
use crate::store::StoreError;
use crate::tables::{self, NODES, Stored, read_node};

type Result<T> = std::result::Result<T, StoreError>;

/// Full text in SQLite.
pub(crate) struct InSqlite;

/// FTS5 reads all that is known of each word to rank one message. So much of that is still quick, for so many words.
const MOST_READ: f64 = 60_000.0;
const MOST_COUNTED: usize = 16;
/// Where it is not, so many messages are read themselves and ranked by what they say.
const MOST_WEIGHED: usize = 200;
/// How common a word is, is told from its newest messages, so many of them.
const N_SAMPLED: i64 = 300;

impl Index for InSqlite {
    fn hold(&self, _sql: &mut dyn Sql) -> Result<bool> {
        // One transaction writes at a time.
        Ok(true)
    }

    fn pending(&self, sql: &mut dyn Sql, limit: usize) -> Result<Vec<Stored>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        // Numbers are given by who writes, one at a time: none below the mark comes later.
        let text = format!(
            "{NODES} WHERE number > coalesce((SELECT value FROM marks WHERE name = 'indexed'), 0) \
             ORDER BY number LIMIT $1"
        );
        sql.rows(&text, &[Value::Int(limit)])?.into_iter().map(read_node).collect()
    }

    fn add(&self, sql: &mut dyn Sql, texts: &[Text], vocabulary: &BTreeSet<String>) -> Result<()> {
        for Text { stored, words } in texts {
            let number = Value::Int(stored.place.number);
            sql.run("INSERT INTO texts (rowid, words) VALUES ($1, $2)", &[number, Value::Text(words)])?;
            let text = "INSERT INTO indexed (number, lane, depth, role, at) VALUES ($1, $2, $3, $4, $5)";
            let values = [
                number,
                Value::Int(stored.place.lane),
                Value::Int(stored.place.depth.into()),
                Value::Int(role_number(stored.role)),
                Value::Int(stored.at.0),
            ];
            sql.run(text, &values)?;
        }
        for word in vocabulary.iter().filter(|word| !stands_alone(word)) {
            let text =
                "INSERT INTO vocabulary (word) VALUES ($1) ON CONFLICT (word) DO NOTHING RETURNING key";
            // What has three letters has no other part.
            if let Some(mut new) = row(sql, text, &[Value::Text(word)])?
                && has_parts(word)
            {
                let values = [Value::Int(new.int()?), Value::Text(word)];
                sql.run("INSERT INTO parts (rowid, word) VALUES ($1, $2)", &values)?;
            }
        }
        let last = texts.iter().map(|text| text.stored.place.number).max().unwrap_or(0);
        let mark = "INSERT INTO marks (name, value) VALUES ('indexed', $1) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE marks.value < excluded.value";
        sql.run(mark, &[Value::Int(last)])?;
        Ok(())
    }

    fn remove(&self, sql: &mut dyn Sql, texts: &[Text], vocabulary: &BTreeSet<String>) -> Result<()> {
        for Text { stored, .. } in texts {
            let number = [Value::Int(stored.place.number)];
            if sql.run("DELETE FROM indexed WHERE number = $1", &number)? > 0 {
                sql.run("DELETE FROM texts WHERE rowid = $1", &number)?;
            }
        }
        for word in vocabulary.iter().filter(|word| !stands_alone(word)) {
            let quoted = format!("\"{word}\"");
            let text = "SELECT rowid FROM texts WHERE texts MATCH $1 LIMIT 1";
            if row(sql, text, &[Value::Text(&quoted)])?.is_some() {
                continue;
            }
            let text = "DELETE FROM vocabulary WHERE word = $1 RETURNING key";
            if let Some(mut gone) = row(sql, text, &[Value::Text(word)])?
                && has_parts(word)
            {
                let values = [Value::Int(gone.int()?), Value::Text(word)];
                sql.run("INSERT INTO parts (parts, rowid, word) VALUES ('delete', $1, $2)", &values)?;
            }
        }
        Ok(())
    }

    fn n_wrong(&self, sql: &mut dyn Sql) -> Result<i64> {
        let role = "CASE n.role WHEN 'system' THEN 0 WHEN 'user' THEN 1 WHEN 'assistant' THEN 2 WHEN 'tool' THEN 3 \
             ELSE 4 END";
        let text = format!(
            "SELECT (SELECT count(*) FROM indexed i LEFT JOIN nodes n ON n.number = i.number WHERE n.number IS NULL \
             OR n.lane <> i.lane OR n.depth <> i.depth OR n.at <> i.at OR {role} <> i.role) \
             + (SELECT count(*) FROM nodes n LEFT JOIN indexed i ON i.number = n.number WHERE i.number IS NULL \
             AND n.number <= coalesce((SELECT value FROM marks WHERE name = 'indexed'), 0)) \
             + (SELECT count(*) FROM indexed i LEFT JOIN texts_docsize d ON d.id = i.number WHERE d.id IS NULL)"
        );
        row(sql, &text, &[])?.map_or(Ok(0), |mut row| row.int())
    }

    fn clear(&self, sql: &mut dyn Sql) -> Result<()> {
        for text in [
            "INSERT INTO texts (texts) VALUES ('delete-all')",
            "INSERT INTO parts (parts) VALUES ('delete-all')",
            "DELETE FROM indexed",
            "DELETE FROM vocabulary",
            "DELETE FROM marks WHERE name = 'indexed'",
        ] {
            sql.run(text, &[])?;
        }
        Ok(())
    }

    fn alike(&self, sql: &mut dyn Sql, like: &Like, limit: usize) -> Result<Vec<String>> {
        let limit = Value::Int(i64::try_from(limit).unwrap_or(i64::MAX));
        let read = |mut row: Row| row.text();
        let order = "ORDER BY length(CAST(word AS BLOB)), word LIMIT $";
        let rows = match like {
            Like::Is(word) => {
                sql.rows("SELECT word FROM vocabulary WHERE word = $1", &[Value::Text(word)])?
            }
            Like::Begin(part) => {
                // The last character there is comes after every word that begins so.
                let end = format!("{part}\u{10ffff}");
                let text = format!(
                    "SELECT word FROM (SELECT word FROM vocabulary WHERE word >= $1 AND word < $2 LIMIT $3) {order}4"
                );
                let values = [Value::Text(part), Value::Text(&end), Value::Int(MOST_SORTED), limit];
                sql.rows(&text, &values)?
            }
            // Words are letters and digits: none of them means something to LIKE.
            Like::End(part) | Like::Within(part) => {
                let end = if matches!(like, Like::End(_)) { "" } else { "%" };
                let pattern = format!("%{part}{end}");
                let text =
                    format!("SELECT word FROM (SELECT word FROM parts WHERE word LIKE $1 LIMIT $2) {order}3");
                sql.rows(&text, &[Value::Text(&pattern), Value::Int(MOST_SORTED), limit])?
            }
        };
        rows.into_iter().map(read).collect()
    }

    fn candidates(
        &self,
        sql: &mut dyn Sql,
        query: &Expanded,
        wanted: &Wanted,
    ) -> Result<(Vec<Candidate>, bool)> {
        if query.any.is_empty() || wanted.numbers.is_empty() {
            return Ok((Vec::new(), true));
        }
        let sample = if wanted.is_ranked { Some(sample(sql, query)?) } else { None };
        let n_read: f64 = sample.iter().flat_map(|sample| sample.n_with.values()).sum();
        let is_cheap = n_read <= MOST_READ && query.phrases().count() <= MOST_COUNTED;
        let score = match &sample {
            Some(_) if is_cheap => "CAST(bm25(texts) * -1000000 AS INTEGER)",
            _ => "0",
        };
        let mut found = rows(sql, query, wanted, score)?;
        let Some(sample) = sample.filter(|_| !is_cheap) else { return Ok((found, true)) };
        let mut index = MemoryIndex::of_query(query, sample);
        for candidate in found.iter().take(MOST_WEIGHED) {
            if let Some(stored) = tables::numbered(sql, candidate.number as i64)? {
                index.add(candidate.number, &stored.json);
            }
        }
        let scores: HashMap<u64, f64> = index.candidates(query).into_iter().collect();
        for candidate in &mut found {
            candidate.score = scores.get(&candidate.number).copied().unwrap_or(0.0);
        }
        let is_all = found.len() <= MOST_WEIGHED;
        Ok((found, is_all))
    }
}

/// The messages of an expression with the rest of what is wanted of them.
fn rows(sql: &mut dyn Sql, query: &Expanded, wanted: &Wanted, score: &str) -> Result<Vec<Candidate>> {
    let find = wanted.find;
    let roles = listed("AND i.role IN", find.roles.iter().map(|role| role_number(*role)));
    let order = if find.order == Order::Oldest { "ASC" } else { "DESC" };
    // The index gives its rows in order, so that a common word costs no more than the rows that are taken.
    let text = format!(
        "SELECT t.rowid, i.lane, i.depth, i.at, {score} \
         FROM texts t CROSS JOIN indexed i ON i.number = t.rowid \
         WHERE texts MATCH $1 AND t.rowid >= $2 AND t.rowid < $3 AND i.at >= $4 AND i.at < $5 {roles}\
         AND ($6 = '[]' OR i.lane NOT IN (SELECT value FROM json_each($6))) \
         ORDER BY t.rowid {order} LIMIT $7"
    );
    let expression = expression(query);
    let lanes = format!("{:?}", wanted.without_lanes);
    let values = [
        Value::Text(&expression),
        Value::Int(wanted.numbers.start),
        Value::Int(wanted.numbers.end),
        Value::Int(find.since.map_or(i64::MIN, |since| since.0)),
        Value::Int(find.before.map_or(i64::MAX, |before| before.0)),
        Value::Text(&lanes),
        Value::Int(i64::try_from(wanted.limit).unwrap_or(i64::MAX)),
    ];
    let read = |mut row: Row| {
        let (number, lane, depth) = (row.number()?, row.int()?, row.number()?);
        let (at, score) = (Millis(row.int()?), row.int()? as f64 / 1e6);
        Ok(Candidate { number, lane, depth, at, score })
    };
    sql.rows(&text, &values)?.into_iter().map(read).collect()
}

/// About how many messages have each word of a query, from how close together the newest of them are. Nothing is
/// known of the words of a query that has many.
fn sample(sql: &mut dyn Sql, query: &Expanded) -> Result<Sample> {
    let last = "SELECT coalesce((SELECT max(number) FROM indexed), 0)";
    let n_messages = row(sql, last, &[])?.map_or(Ok(0), |mut row| row.int())?;
    let words: BTreeSet<&String> = query.phrases().flat_map(|phrase| &phrase.words).collect();
    let mut n_with = HashMap::new();
    for word in words.into_iter().take(MOST_COUNTED) {
        let quoted = format!("\"{word}\"");
        let text = "SELECT rowid FROM texts WHERE texts MATCH $1 ORDER BY rowid DESC LIMIT 1 OFFSET $2";
        let seen = row(sql, text, &[Value::Text(&quoted), Value::Int(N_SAMPLED)])?;
        let n = match seen.map(|mut row| row.int()).transpose()? {
            Some(number) => N_SAMPLED as f64 * n_messages as f64 / (n_messages - number).max(1) as f64,
            None => N_SAMPLED as f64 / 2.0,
        };
        n_with.insert(word.clone(), n);
    }
    Ok(Sample { n_messages: n_messages as f64, n_with })
}

/// A test for some numbers; none if there are none.
fn listed(test: &str, numbers: impl Iterator<Item = i64>) -> String {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    if numbers.is_empty() { String::new() } else { format!("{test} ({}) ", numbers.join(",")) }
}

fn has_parts(word: &str) -> bool {
    word.chars().nth(3).is_some()
}

/// A query as FTS5 reads it. Words are letters and digits alone, so nothing in them needs care.
fn expression(query: &Expanded) -> String {
    let phrase = |phrase: &Phrase| format!("\"{}\"", phrase.words.join(" "));
    let term =
        |phrases: &Vec<Phrase>| format!("({})", phrases.iter().map(phrase).collect::<Vec<_>>().join(" OR "));
    let group = |group: &ExpandedAll| {
        let with = group.with.iter().map(term).collect::<Vec<_>>().join(" AND ");
        if group.without.is_empty() {
            return format!("({with})");
        }
        let without = group.without.iter().map(term).collect::<Vec<_>>().join(" OR ");
        format!("(({with}) NOT ({without}))")
    };
    query.any.iter().map(group).collect::<Vec<_>>().join(" OR ")
}
