//! Garbage collection: deletes messages and blobs that no session or event refers to.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::sql::{Sql, SqlValue};
use crate::database::tables;
use crate::search::{self, Index};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// Deletes messages that no session or event leads to, and blobs that no event names. Returns the number of deleted
/// messages.
pub(crate) fn collect(sql: &mut dyn Sql, index: &dyn Index) -> Result<u64> {
    let reachable = reachable_depths(sql)?;
    let mark = "INSERT INTO marks (name, value) SELECT 'numbered', coalesce(max(number), 0) FROM nodes WHERE true \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE marks.value < excluded.value";
    sql.execute(mark, &[])?;
    let mut n_deleted = 0;
    for (lane, _, _) in all_lanes(sql)? {
        // The first depth to delete.
        let from = reachable.get(&lane).map_or(0, |depth| depth + 1);
        let values = [SqlValue::Int(lane), SqlValue::Int(from)];
        let deleted = tables::nodes(sql, lane, u32::try_from(from).unwrap_or(u32::MAX)..u32::MAX)?;
        if !deleted.is_empty() {
            search::remove_messages(sql, index, deleted)?;
        }
        n_deleted += sql.execute("DELETE FROM nodes WHERE lane = $1 AND depth >= $2", &values)?;
        if !reachable.contains_key(&lane) {
            sql.execute("DELETE FROM lanes WHERE lane = $1", &[SqlValue::Int(lane)])?;
        }
    }
    delete_unreferenced_blobs(sql)?;
    Ok(n_deleted)
}

pub(crate) fn all_lanes(sql: &mut dyn Sql) -> Result<Vec<(i64, Option<i64>, i64)>> {
    let rows = sql.query("SELECT lane, parent, start FROM lanes ORDER BY lane DESC", &[])?;
    rows.into_iter().map(|mut row| Ok((row.int()?, row.opt_int()?, row.int()?))).collect()
}

/// The last reachable depth of each lane; lanes without a reachable message are missing.
pub(crate) fn reachable_depths(sql: &mut dyn Sql) -> Result<BTreeMap<i64, i64>> {
    // A session whose tip is missing still has its lane and length, which protect its other messages until a repair.
    let text = "SELECT led.lane, max(led.depth) FROM (SELECT n.lane, n.depth FROM nodes n \
         WHERE n.number IN (SELECT tip FROM sessions WHERE tip IS NOT NULL \
         UNION SELECT tip FROM events WHERE tip IS NOT NULL) \
         UNION ALL SELECT s.lane, s.n_messages - 1 FROM sessions s WHERE s.lane IS NOT NULL) AS led GROUP BY led.lane";
    let mut reachable = BTreeMap::new();
    for mut row in sql.query(text, &[])? {
        reachable.insert(row.int()?, row.int()?);
    }
    // A lane is younger than its parent, so one pass from the youngest lane reaches every ancestor.
    for (lane, parent, start) in all_lanes(sql)? {
        if let Some(parent) = parent.filter(|_| reachable.contains_key(&lane)) {
            let depth = reachable.entry(parent).or_insert(start - 1);
            *depth = (*depth).max(start - 1);
        }
    }
    Ok(reachable)
}

/// Deletes blobs that no event names.
pub(crate) fn delete_unreferenced_blobs(sql: &mut dyn Sql) -> Result<()> {
    for id in unreferenced_blobs(sql)? {
        sql.execute("DELETE FROM blobs WHERE id = $1", &[SqlValue::Bytes(&id)])?;
    }
    Ok(())
}

/// The ids of blobs that no event names.
pub(crate) fn unreferenced_blobs(sql: &mut dyn Sql) -> Result<BTreeSet<[u8; 32]>> {
    let mut ids = BTreeSet::new();
    for mut row in sql.query("SELECT id FROM blobs", &[])? {
        ids.extend(row.opt_hash()?);
    }
    let mut last = 0;
    while !ids.is_empty() {
        let text = "SELECT number, body FROM events WHERE number > $1 ORDER BY number LIMIT 256";
        let rows = sql.query(text, &[SqlValue::Int(last)])?;
        if rows.is_empty() {
            break;
        }
        for mut row in rows {
            last = row.int()?;
            for named in blob_ids_in(&row.text()?) {
                ids.remove(&named);
            }
        }
    }
    Ok(ids)
}

/// Every possible blob id in a text: 64 consecutive hexadecimal digits.
fn blob_ids_in(text: &str) -> Vec<[u8; 32]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let digits: Vec<Option<u8>> = text.bytes().map(digit).collect();
    let runs = digits.split(Option::is_none).filter(|run| run.len() >= 64);
    let pair = |digits: &[Option<u8>]| digits[0].unwrap_or(0) << 4 | digits[1].unwrap_or(0);
    runs.flat_map(|run| run.windows(64))
        .map(|window| std::array::from_fn(|i| pair(&window[2 * i..2 * i + 2])))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BlobId;

    #[test]
    fn blob_ids_are_found_in_a_text() {
        let id = BlobId::new(b"x");
        assert_eq!(blob_ids_in(&format!("{{\"body\":\"{id}\"}}")), [id.0]);
        assert!(blob_ids_in(&format!("0{id}")).contains(&id.0));
        assert!(blob_ids_in(&id.to_string()[1..]).is_empty());
    }
}
