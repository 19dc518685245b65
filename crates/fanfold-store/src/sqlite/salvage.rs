//! Rebuilds a corrupt file from its readable rows.
//!
//! Rows are read in key order without indexes, from both ends towards the damaged pages. Derived data is computed
//! again. The new pages replace the old ones in one transaction, so any other process sees either the old or the
//! new file. The old file is saved in the same folder as `.broken`.

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

/// The tables that cannot be derived from others, except `marks`.
const TABLES: [&str; 5] = ["lanes", "nodes", "sessions", "events", "blobs"];

/// A table and its columns.
struct Table {
    name: &'static str,
    /// All columns except an integer key, which is an alias of `rowid`.
    columns: String,
}

/// Reads the columns of [`TABLES`] from the schema.
fn tables(connection: &Connection) -> Result<Vec<Table>> {
    let text =
        "SELECT group_concat(name, ', ') FROM pragma_table_info(?) WHERE NOT (pk AND type = 'INTEGER')";
    let columns = |name| connection.query_row(text, [name], |row| row.get(0)).map_err(error::convert);
    TABLES.into_iter().map(|name| Ok(Table { name, columns: columns(name)? })).collect()
}

/// The maximum number of unreadable key ranges that are bisected for readable rows.
const MAX_GAPS: usize = 2_000;

/// If the end of a table is unreadable, the range of keys after the last readable row that is searched for more rows.
const MAX_KEY_GAP: i64 = 1 << 20;

/// The result of rebuilding a file.
pub(super) struct SalvageReport {
    /// The copy of the corrupt file.
    pub(super) backup: PathBuf,
    /// The tables that lost rows.
    pub(super) damaged_tables: Vec<&'static str>,
}

/// Returns whether every row of the underived tables can be read.
pub(super) fn all_rows_readable(connection: &Connection) -> Result<bool> {
    for table in &tables(connection)? {
        let scan = RowScan { low: i64::MIN, high: i64::MAX, order: "ASC" };
        if !scan_rows(connection, table, &scan, &mut |_, _| Ok(()))?.is_complete {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Rebuilds a file. Fails with [`StoreError::Busy`] if another process has it open.
pub(super) fn salvage(path: &Path, wait: Duration) -> Result<SalvageReport> {
    let mut old = connect::open_exclusive(path, wait)?;
    let fresh_path = connect::sibling(path, ".mending");
    remove_database(&fresh_path);
    connect::create_file(&fresh_path)?;
    let result = connect::open_writer(&fresh_path, wait).and_then(|fresh| {
        let damaged_tables = copy_tables(&old, &fresh)?;
        let backup = unused_backup_path(path);
        connect::create_file(&backup)?;
        let mut copy = Connection::open(&backup).map_err(error::convert)?;
        copy_pages(&old, &mut copy)?;
        copy_pages(&fresh, &mut old)?;
        Ok(SalvageReport { backup, damaged_tables })
    });
    remove_database(&fresh_path);
    result
}

/// Copies the readable rows and rebuilds the full text index. Returns the tables that lost rows.
fn copy_tables(old: &Connection, fresh: &Connection) -> Result<Vec<&'static str>> {
    super::transaction(fresh, "BEGIN IMMEDIATE", &mut |fresh: &Connection| {
        let mut damaged_tables = Vec::new();
        for table in &tables(fresh)? {
            let (n_rows, is_complete) = copy_rows(old, fresh, table)?;
            if !is_complete && n_rows == 0 {
                let text = format!("no row of its table {} can be read", table.name);
                return Err(StoreError::Corrupt(text));
            }
            if !is_complete {
                damaged_tables.push(table.name);
            }
        }
        if !copy_named_values(old, fresh)? {
            damaged_tables.push("marks");
        }
        search::rebuild(&mut SqliteExecutor(fresh), &SqliteIndex)?;
        Ok(damaged_tables)
    })
}

/// Copies the readable rows of a table, from both ends of every unreadable key range. Returns their number, and
/// whether no row was lost.
fn copy_rows(old: &Connection, fresh: &Connection, table: &Table) -> Result<(usize, bool)> {
    let Table { name, columns } = table;
    let placeholders = ", ?".repeat(columns.split(',').count());
    let text = format!("INSERT OR IGNORE INTO {name} (rowid, {columns}) VALUES (?{placeholders})");
    let mut insert = fresh.prepare(&text).map_err(error::convert)?;
    let (mut n_rows, mut is_complete) = (0, true);
    let mut gaps = VecDeque::from([(i64::MIN, i64::MAX)]);
    let mut n_gaps = 0;
    while let Some((low, high)) = gaps.pop_front() {
        let mut copy_row = |_: i64, values: Vec<Value>| match insert.execute(params_from_iter(values)) {
            Ok(n) => {
                n_rows += n;
                Ok(())
            }
            // A corrupt row: fanfold writes no row that violates a constraint.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(()),
            Err(error) => Err(self::error::convert(error)),
        };
        let up = scan_rows(old, table, &RowScan { low, high, order: "ASC" }, &mut copy_row)?;
        if up.is_complete {
            continue;
        }
        is_complete = false;
        let low = up.last_key.map_or(low, |last| last.saturating_add(1));
        let down = scan_rows(old, table, &RowScan { low, high, order: "DESC" }, &mut copy_row)?;
        n_gaps += 1;
        if down.is_complete || n_gaps > MAX_GAPS {
            continue;
        }
        // Keys start at 1, and the last key is unknown.
        let low = low.max(1);
        let high = down.last_key.map_or(high.min(low.saturating_add(MAX_KEY_GAP)), |last| last - 1);
        if low < high {
            let middle = low + (high - low) / 2;
            gaps.extend([(low, middle), (middle + 1, high)]);
        }
    }
    Ok((n_rows, is_complete))
}

/// Copies the named values, except `indexed`, which rebuilding the index sets. Returns whether all could be read.
fn copy_named_values(old: &Connection, fresh: &Connection) -> Result<bool> {
    let all = || -> rusqlite::Result<Vec<(String, i64)>> {
        let mut statement = old.prepare("SELECT name, value FROM marks WHERE name <> 'indexed'")?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let named_values = match all().map_err(error::convert) {
        Ok(named_values) => named_values,
        Err(StoreError::Corrupt(_)) => return Ok(false),
        Err(error) => return Err(error),
    };
    for named_value in named_values {
        fresh
            .execute("INSERT OR IGNORE INTO marks (name, value) VALUES (?, ?)", named_value)
            .map_err(error::convert)?;
    }
    Ok(true)
}

/// A range of keys to read and its direction.
struct RowScan {
    low: i64,
    high: i64,
    order: &'static str,
}

/// The result of reading a range of rows.
struct ScanResult {
    /// The last key that was read.
    last_key: Option<i64>,
    /// True if the range was read without an error.
    is_complete: bool,
}

fn scan_rows(
    connection: &Connection,
    table: &Table,
    scan: &RowScan,
    on_row: &mut dyn FnMut(i64, Vec<Value>) -> Result<()>,
) -> Result<ScanResult> {
    let Table { name, columns } = table;
    let text = format!(
        "SELECT rowid, {columns} FROM {name} NOT INDEXED WHERE rowid BETWEEN ? AND ? ORDER BY rowid {}",
        scan.order
    );
    let mut result = ScanResult { last_key: None, is_complete: false };
    let ignore_corruption = |error: rusqlite::Error| match error::convert(error) {
        StoreError::Corrupt(_) => Ok(()),
        error => Err(error),
    };
    let mut statement = match connection.prepare_cached(&text) {
        Ok(statement) => statement,
        Err(error) => return ignore_corruption(error).map(|()| result),
    };
    let n_columns = statement.column_count();
    let mut rows = statement.query([scan.low, scan.high]).map_err(error::convert)?;
    loop {
        let values = match rows.next() {
            Ok(None) => break,
            Ok(Some(row)) => (0..n_columns).map(|i| row.get(i)).collect::<rusqlite::Result<Vec<Value>>>(),
            Err(error) => return ignore_corruption(error).map(|()| result),
        };
        match values {
            Ok(values) => {
                if let Some(Value::Integer(key)) = values.first() {
                    result.last_key = Some(*key);
                    on_row(*key, values)?;
                }
            }
            Err(error) => return ignore_corruption(error).map(|()| result),
        }
    }
    result.is_complete = true;
    Ok(result)
}

/// Copies all pages of a file, regardless of their contents.
fn copy_pages(from: &Connection, to: &mut Connection) -> Result<()> {
    let backup = Backup::new(from, to).map_err(error::convert)?;
    match backup.step(-1).map_err(error::convert)? {
        StepResult::Done => Ok(()),
        _ => Err(StoreError::Busy { tries: 1 }),
    }
}

/// Returns an unused path for the backup in the folder of the file.
fn unused_backup_path(path: &Path) -> PathBuf {
    let first = connect::sibling(path, ".broken");
    let others = (2..).map(|n: u32| connect::sibling(path, &format!(".broken-{n}")));
    std::iter::once(first).chain(others).find(|name| !name.exists()).unwrap_or_default()
}

/// Removes a database file with its log.
fn remove_database(path: &Path) {
    for ending in ["", "-wal", "-shm"] {
        // It may not be there.
        let _ = std::fs::remove_file(connect::sibling(path, ending));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables that a repair computes again or empties.
    const DERIVED_TABLES: [&str; 3] = ["indexed", "vocabulary", "locks"];

    /// Inserts a row without NULLs: every number is 1, and every text is also a valid role.
    fn insert_full_row(connection: &Connection, table: &str) {
        let text = "SELECT group_concat(CASE type WHEN 'INTEGER' THEN '1' WHEN 'TEXT' THEN quote('user') \
             ELSE 'zeroblob(32)' END, ', ') FROM pragma_table_info(?)";
        let values: String = connection.query_row(text, [table], |row| row.get(0)).unwrap();
        connection.execute(&format!("INSERT INTO {table} VALUES ({values})"), []).unwrap();
    }

    fn first_row(connection: &Connection, table: &str) -> Vec<Value> {
        let mut statement =
            connection.prepare(&format!("SELECT * FROM {table} ORDER BY 1 DESC LIMIT 1")).unwrap();
        let n_columns = statement.column_count();
        statement.query_row([], |row| (0..n_columns).map(|i| row.get(i)).collect()).unwrap()
    }

    #[test]
    fn every_column_of_every_table_is_salvaged() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            let path = folder.path().join(name);
            connect::create_file(&path).unwrap();
            connect::open_writer(&path, Duration::ZERO).unwrap()
        };
        let (old, fresh) = (open("old"), open("fresh"));
        let names = "SELECT name FROM pragma_table_list WHERE strict";
        let mut statement = old.prepare(names).unwrap();
        let tables: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        let tables: Vec<&String> =
            tables.iter().filter(|name| !DERIVED_TABLES.contains(&name.as_str())).collect();
        assert!(tables.len() > TABLES.len(), "{tables:?}");
        tables.iter().for_each(|table| insert_full_row(&old, table));
        assert!(copy_tables(&old, &fresh).unwrap().is_empty());
        for table in tables {
            assert_eq!(first_row(&fresh, table), first_row(&old, table), "{table}");
        }
    }
}
