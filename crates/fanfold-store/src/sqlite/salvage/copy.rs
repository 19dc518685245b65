//! Copies every readable row of a damaged file to a new store.

use std::collections::BTreeMap;

use rusqlite::{Connection, ErrorCode, params_from_iter};

use super::page_file::{PageFile, PageSet, Row};
use super::tables::{TABLES, Table};
use super::{error, lost_sessions};
use crate::database::sql::Cell;
use crate::search::{self, SqliteIndex};
use crate::sqlite::executor::SqliteExecutor;
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// The trees of a damaged file.
pub(super) struct DamagedFile {
    pages: PageFile,
    /// The root page of each table and index.
    roots: BTreeMap<String, u32>,
}

impl DamagedFile {
    /// Finds the trees of a file: by its schema, or, if that is damaged, where a new store has them.
    fn new(pages: PageFile, fresh: &Connection) -> Result<DamagedFile> {
        let mut statement = fresh
            .prepare("SELECT name, rootpage FROM sqlite_schema WHERE rootpage > 0")
            .map_err(error::convert)?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(error::convert)?;
        let mut roots: BTreeMap<String, u32> =
            rows.collect::<rusqlite::Result<_>>().map_err(error::convert)?;
        pages.read_tree(1, &mut pages.empty_set(), &mut |row| {
            if let [_, Cell::Text(name), _, Cell::Int(root), _] = row.cells.as_slice()
                && let Ok(root @ 2..) = u32::try_from(*root)
            {
                roots.insert(name.clone(), root);
            }
        });
        Ok(DamagedFile { pages, roots })
    }

    /// Reads the rows of a table that are on no page in `seen`. Returns whether all of it could be read.
    fn read(&self, name: &str, seen: &mut PageSet, on_row: &mut dyn FnMut(Row)) -> bool {
        let root = self.roots.get(name);
        root.is_some_and(|root| self.pages.read_tree(*root, seen, on_row))
    }

    /// Reads the entries of an index, or the rows of a table without keys. Returns whether all could be read.
    pub(super) fn read_index(&self, name: &str, on_entry: &mut dyn FnMut(&[Cell])) -> bool {
        self.read(name, &mut self.pages.empty_set(), &mut |row| on_entry(&row.cells))
    }
}

/// Copies the readable rows and rebuilds the full text index. Returns a description of each loss.
pub(super) fn copy_rows(pages: PageFile, fresh: &Connection) -> Result<Vec<String>> {
    let file = DamagedFile::new(pages, fresh)?;
    crate::sqlite::transaction(fresh, "BEGIN IMMEDIATE", &mut |fresh: &Connection| {
        let incomplete = copy_tables(&file, fresh)?;
        restore_lanes(&file, fresh)?;
        if incomplete.contains(&"sessions") {
            lost_sessions::restore(&file, fresh)?;
        }
        let mut losses = Vec::new();
        let mut n_saved = 0;
        for table in &TABLES {
            n_saved += count(fresh, table)?;
            losses.extend(loss(&file, fresh, table, incomplete.contains(&table.name))?);
        }
        if n_saved == 0 {
            return Err(StoreError::Corrupt("no row of a store can be read in it".into()));
        }
        if !copy_named_values(&file, fresh)? {
            losses.push("some of its named values are lost".to_owned());
        }
        search::rebuild(&mut SqliteExecutor(fresh), &SqliteIndex)?;
        Ok(losses)
    })
}

/// Copies all tables. Returns those that could not be read completely.
fn copy_tables(file: &DamagedFile, fresh: &Connection) -> Result<Vec<&'static str>> {
    let mut seen = file.pages.empty_set();
    let mut incomplete = Vec::new();
    for table in &TABLES {
        let mut inserter = Inserter { fresh, n_refused: 0, failure: None };
        let is_complete = file.read(table.name, &mut seen, &mut |row| inserter.insert(&[table], row));
        if !is_complete || inserter.n_refused > 0 {
            incomplete.push(table.name);
        }
        inserter.failure.map_or(Ok(()), Err)?;
    }
    if !incomplete.is_empty() {
        // The parents of pages may be lost. A free page is not such a page: its rows were deleted.
        for root in file.roots.values() {
            file.pages.read_tree(*root, &mut seen, &mut |_| {});
        }
        file.pages.add_free_pages(&mut seen);
        let tables: Vec<&Table> = TABLES.iter().filter(|table| incomplete.contains(&table.name)).collect();
        let mut inserter = Inserter { fresh, n_refused: 0, failure: None };
        file.pages.read_unseen_leaves(&mut seen, &mut |row| inserter.insert(&tables, row));
        inserter.failure.map_or(Ok(()), Err)?;
    }
    Ok(incomplete)
}

/// Inserts rows.
struct Inserter<'a> {
    fresh: &'a Connection,
    /// The number of rows that belong to none of the tables, or violate a constraint.
    n_refused: usize,
    failure: Option<StoreError>,
}

impl Inserter<'_> {
    /// Inserts a row into the table of its shape. A row with the key or id of an earlier one is ignored.
    fn insert(&mut self, tables: &[&Table], row: Row) {
        let table = tables.iter().find(|table| table.accepts(&row));
        let inserted = table.map_or(Ok(0), |table| insert(self.fresh, table.name, &row.into_values()));
        match inserted {
            Ok(n) => self.n_refused += usize::from(n == 0),
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }
}

/// Inserts a row, unless it violates a constraint, as no row does that fanfold wrote.
pub(super) fn insert(fresh: &Connection, table: &str, values: &[Cell]) -> Result<usize> {
    let placeholders = vec!["?"; values.len()].join(", ");
    let text = format!("INSERT OR IGNORE INTO {table} VALUES ({placeholders})");
    let mut statement = fresh.prepare_cached(&text).map_err(error::convert)?;
    match statement.execute(params_from_iter(values.iter().map(Cell::as_value))) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(0),
        result => result.map_err(error::convert),
    }
}

/// Restores lanes from their index, which has all of their columns.
fn restore_lanes(file: &DamagedFile, fresh: &Connection) -> Result<()> {
    let mut inserter = Inserter { fresh, n_refused: 0, failure: None };
    let lanes = TABLES.iter().find(|table| table.name == "lanes");
    file.read_index("lanes_by_parent", &mut |entry| {
        if let ([parent, start, lane], Some(lanes)) = (entry, lanes) {
            let cells = vec![lane.clone(), parent.clone(), start.clone()];
            inserter.insert(&[lanes], Row { key: None, cells });
        }
    });
    inserter.failure.map_or(Ok(()), Err)
}

/// Describes the lost rows of a table, if any.
fn loss(
    file: &DamagedFile,
    fresh: &Connection,
    table: &Table,
    is_incomplete: bool,
) -> Result<Option<String>> {
    let n_saved = count(fresh, table)?;
    let mut n_all: i64 = 0;
    let is_known = file.read_index(table.index, &mut |_| n_all += 1);
    Ok(match is_known {
        true if n_saved < n_all => {
            let n_lost = n_all - n_saved;
            Some(format!("{n_lost} of {n_all} rows of its table {} are lost", table.name))
        }
        false if is_incomplete => Some(format!("some rows of its table {} may be lost", table.name)),
        _ => None,
    })
}

fn count(fresh: &Connection, table: &Table) -> Result<i64> {
    let text = format!("SELECT count(*) FROM {}", table.name);
    fresh.query_row(&text, [], |row| row.get(0)).map_err(error::convert)
}

/// Copies the named values, except `indexed`, which rebuilding the index sets. Returns whether all could be read.
fn copy_named_values(file: &DamagedFile, fresh: &Connection) -> Result<bool> {
    let mut result = Ok(0);
    let is_complete = file.read_index("marks", &mut |entry| {
        if let ([Cell::Text(name), Cell::Int(_)], Ok(_)) = (entry, &result)
            && name != "indexed"
        {
            result = insert(fresh, "marks", entry);
        }
    });
    result.map(|_| is_complete)
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use rusqlite::types::Value;

    use super::*;
    use crate::sqlite::connect;

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
        let path = folder.path().join("old");
        connect::create_file(&path).unwrap();
        let old = connect::open_writer(&path, Duration::ZERO).unwrap();
        let fresh = connect::open_writer(Path::new(connect::MEMORY), Duration::ZERO).unwrap();
        let names = "SELECT name FROM pragma_table_list WHERE strict";
        let mut statement = old.prepare(names).unwrap();
        let tables: Vec<String> =
            statement.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
        let tables: Vec<&String> =
            tables.iter().filter(|name| !DERIVED_TABLES.contains(&name.as_str())).collect();
        assert!(tables.len() > TABLES.len(), "{tables:?}");
        tables.iter().for_each(|table| insert_full_row(&old, table));
        old.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        assert!(copy_rows(PageFile::open(&path).unwrap(), &fresh).unwrap().is_empty());
        for table in tables {
            assert_eq!(first_row(&fresh, table), first_row(&old, table), "{table}");
        }
    }
}
