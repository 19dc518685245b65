//! Full text in SQLite, by FTS5.

use std::collections::BTreeSet;

use super::find::{Candidate, Order};
use super::lookup::{Index, Text, Wanted, role_number};
use super::query::{Expanded, ExpandedAll, Like, Phrase};
use super::words::stands_alone;
use crate::session::Millis;
use crate::sql::{Row, Sql, Value, row};
use crate::store::StoreError;
use crate::tables::{NODES, Stored, read_node};

type Result<T> = std::result::Result<T, StoreError>;

/// Full text in SQLite.
pub(crate) struct InSqlite;

/// So many words are sorted to find the shortest of those that have a part.
const MOST_SORTED: i64 = 20_000;

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
            let words = words.join(" ");
            sql.run("INSERT INTO texts (rowid, words) VALUES ($1, $2)", &[number, Value::Text(&words)])?;
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

    fn candidates(&self, sql: &mut dyn Sql, query: &Expanded, wanted: &Wanted) -> Result<Vec<Candidate>> {
        if query.any.is_empty() || wanted.numbers.is_empty() {
            return Ok(Vec::new());
        }
        let find = wanted.find;
        let roles = listed("AND i.role IN", find.roles.iter().map(|role| role_number(*role)));
        let score = if wanted.is_ranked { "CAST(bm25(texts) * -1000000 AS INTEGER)" } else { "0" };
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
    let phrase = |phrase: &Phrase| {
        let end = if phrase.is_prefix { " *" } else { "" };
        format!("\"{}\"{end}", phrase.words.join(" "))
    };
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
