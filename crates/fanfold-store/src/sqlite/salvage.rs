//! A broken file made anew from the rows that can still be read in it.
//!
//! Rows are read in the order of their keys, past any index, from both ends towards what is broken. All that follows
//! from them is made again. The new pages go over the old ones in one transaction, so whoever opens the file finds the
//! one or the other; the old file is kept beside it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup, StepResult};
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::executor::SqliteExecutor;
use super::{connect, error};
use crate::search::{self, SqliteIndex};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// A table that follows from nothing else.
struct Table {
    name: &'static str,
    /// The number of a row; it is the first column.
    key: &'static str,
    columns: &'static str,
}

const TABLES: [Table; 5] = [
    Table { name: "lanes", key: "lane", columns: "lane, parent, start" },
    Table { name: "nodes", key: "number", columns: "number, id, lane, depth, role, at, json" },
    Table {
        name: "sessions",
        key: "key",
        columns: "key, id, source, format, model, title, goal, parent, relation, root, tip, lane, n_messages, \
                  n_events, started_at, updated_at, ended_at, end_reason",
    },
    Table { name: "events", key: "number", columns: "number, session, seq, at, tip, kind, body" },
    Table { name: "blobs", key: "rowid", columns: "rowid, id, bytes" },
];

/// So many gaps are looked into for rows between broken pages.
const MAX_GAPS: usize = 2_000;

/// So far behind the last row that was read others are looked for, where the end of a table is broken.
const REACH: i64 = 1 << 20;

/// What became of a broken file.
pub(super) struct SalvageReport {
    /// Where the broken one is kept.
    pub(super) backup: PathBuf,
    /// The tables that have lost rows.
    pub(super) damaged_tables: Vec<&'static str>,
}

/// Whether every row of what follows from nothing else can be read.
pub(super) fn all_rows_readable(connection: &Connection) -> Result<bool> {
    for table in &TABLES {
        let scan = Scan { low: i64::MIN, high: i64::MAX, order: "ASC" };
        if !scan_rows(connection, table, &scan, &mut |_, _| Ok(()))?.is_complete {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes a file anew. Nobody else may have it open.
pub(super) fn salvage(path: &Path, wait: Duration) -> Result<SalvageReport> {
    let mut old = connect::open_exclusive(path, wait)?;
    let fresh_path = connect::sibling(path, ".mending");
    remove_database(&fresh_path);
    connect::create_file(&fresh_path)?;
    let result = connect::open_writer(&fresh_path, wait).and_then(|fresh| {
        let torn = copy_tables(&old, &fresh)?;
        let kept = unused_backup_path(path);
        connect::create_file(&kept)?;
        let mut copy = Connection::open(&kept).map_err(error::convert)?;
        copy_pages(&old, &mut copy)?;
        copy_pages(&fresh, &mut old)?;
        Ok(SalvageReport { backup: kept, damaged_tables: torn })
    });
    remove_database(&fresh_path);
    result
}

/// Copies what can be read, and makes the rest from it. Gives the tables that were torn.
fn copy_tables(old: &Connection, fresh: &Connection) -> Result<Vec<&'static str>> {
    super::transaction(fresh, "BEGIN IMMEDIATE", &mut |fresh: &Connection| {
        let mut torn = Vec::new();
        for table in &TABLES {
            let (n_rows, is_whole) = copy_rows(old, fresh, table)?;
            if !is_whole && n_rows == 0 {
                let text = format!("nothing can be read of its table {}", table.name);
                return Err(StoreError::Broken(text));
            }
            if !is_whole {
                torn.push(table.name);
            }
        }
        if !copy_named_values(old, fresh)? {
            torn.push("marks");
        }
        search::rebuild(&mut SqliteExecutor(fresh), &SqliteIndex)?;
        Ok(torn)
    })
}

/// The rows of a table, from both ends of every gap. Gives how many there were, and whether that is all.
fn copy_rows(old: &Connection, fresh: &Connection, table: &Table) -> Result<(usize, bool)> {
    let marks = vec!["?"; table.columns.split(',').count()].join(", ");
    let (name, columns) = (table.name, table.columns);
    let text = format!("INSERT OR IGNORE INTO {name} ({columns}) VALUES ({marks})");
    let mut insert = fresh.prepare(&text).map_err(error::convert)?;
    let (mut n_rows, mut is_whole) = (0, true);
    let mut gaps = VecDeque::from([(i64::MIN, i64::MAX)]);
    let mut n_gaps = 0;
    while let Some((low, high)) = gaps.pop_front() {
        let mut keep = |_: i64, values: Vec<Value>| match insert.execute(params_from_iter(values)) {
            Ok(n) => {
                n_rows += n;
                Ok(())
            }
            // Not a row that we could have written.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(()),
            Err(error) => Err(self::error::convert(error)),
        };
        let up = scan_rows(old, table, &Scan { low, high, order: "ASC" }, &mut keep)?;
        if up.is_complete {
            continue;
        }
        is_whole = false;
        let low = up.last_key.map_or(low, |last| last.saturating_add(1));
        let down = scan_rows(old, table, &Scan { low, high, order: "DESC" }, &mut keep)?;
        n_gaps += 1;
        if down.is_complete || n_gaps > MAX_GAPS {
            continue;
        }
        // Keys begin with 1, and nobody knows where they end.
        let low = low.max(1);
        let high = down.last_key.map_or(high.min(low.saturating_add(REACH)), |last| last - 1);
        if low < high {
            let middle = low + (high - low) / 2;
            gaps.extend([(low, middle), (middle + 1, high)]);
        }
    }
    Ok((n_rows, is_whole))
}

/// What is remembered by name, but for how far the index goes: that is made anew. Whether all of it could be read.
fn copy_named_values(old: &Connection, fresh: &Connection) -> Result<bool> {
    let all = || -> rusqlite::Result<Vec<(String, i64)>> {
        let mut statement = old.prepare("SELECT name, value FROM marks WHERE name <> 'indexed'")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let marks = match all().map_err(error::convert) {
        Ok(marks) => marks,
        Err(StoreError::Broken(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    for mark in marks {
        fresh
            .execute("INSERT OR IGNORE INTO marks (name, value) VALUES (?, ?)", mark)
            .map_err(error::convert)?;
    }
    Ok(true)
}

/// A run of rows.
struct Scan {
    low: i64,
    high: i64,
    order: &'static str,
}

/// How a run of rows was read.
struct ScanResult {
    /// The last key.
    last_key: Option<i64>,
    /// Whether nothing broken was in the way.
    is_complete: bool,
}

fn scan_rows(
    connection: &Connection,
    table: &Table,
    scan: &Scan,
    keep: &mut dyn FnMut(i64, Vec<Value>) -> Result<()>,
) -> Result<ScanResult> {
    let Table { name, key, columns } = table;
    let text = format!(
        "SELECT {columns} FROM {name} NOT INDEXED WHERE {key} BETWEEN ? AND ? ORDER BY {key} {}",
        scan.order
    );
    let mut reading = ScanResult { last_key: None, is_complete: false };
    let is_broken = |error: rusqlite::Error| match error::convert(error) {
        StoreError::Broken(_) => Ok(()),
        error => Err(error),
    };
    let mut statement = match connection.prepare_cached(&text) {
        Ok(statement) => statement,
        Err(error) => return is_broken(error).map(|()| reading),
    };
    let n_columns = statement.column_count();
    let mut rows = statement.query([scan.low, scan.high]).map_err(error::convert)?;
    loop {
        let values = match rows.next() {
            Ok(None) => break,
            Ok(Some(row)) => (0..n_columns).map(|i| row.get(i)).collect::<rusqlite::Result<Vec<Value>>>(),
            Err(error) => return is_broken(error).map(|()| reading),
        };
        match values {
            Ok(values) => {
                if let Some(Value::Integer(key)) = values.first() {
                    reading.last_key = Some(*key);
                    keep(*key, values)?;
                }
            }
            Err(error) => return is_broken(error).map(|()| reading),
        }
    }
    reading.is_complete = true;
    Ok(reading)
}

/// Copies a file, page by page, whatever is in them.
fn copy_pages(from: &Connection, to: &mut Connection) -> Result<()> {
    let backup = Backup::new(from, to).map_err(error::convert)?;
    match backup.step(-1).map_err(error::convert)? {
        StepResult::Done => Ok(()),
        _ => Err(StoreError::Busy { tries: 1 }),
    }
}

/// A name beside a file that nothing has yet.
fn unused_backup_path(path: &Path) -> PathBuf {
    let first = connect::sibling(path, ".broken");
    let others = (2..).map(|n: u32| connect::sibling(path, &format!(".broken-{n}")));
    std::iter::once(first).chain(others).find(|name| !name.exists()).unwrap_or_default()
}

/// Removes a file of ours with its log.
fn remove_database(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        // It may not be there.
        let _ = std::fs::remove_file(connect::sibling(path, ending));
    }
}
