//! A store in one SQLite file.
//!
//! One connection writes, others read beside it. A batch is one immediate transaction in the write-ahead log, synced
//! before it is acknowledged.

mod connect; // opening, and what a connection is set to
mod error; //   what SQLite's errors mean here
mod executor; // runs statements on a connection
mod check; //   the file's own soundness
mod salvage; // a broken file made anew

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::database::sql::Sql;
use crate::database::store_methods::sql_store_methods;
use crate::database::{commit, garbage, tables};
use crate::doctor::{CheckMode, Finding};
use crate::model::{Batch, CommitSummary};
use crate::search::{self, IndexBacklog, SearchHits, SearchSpec, SqliteIndex};
use crate::store::{Store, StoreError, StoreSize};
pub(crate) use connect::database_file;
use executor::SqliteExecutor;

/// How long a store waits for others who write to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyPolicy {
    /// How often a batch is tried.
    pub tries: u32,
    /// How long one try waits for its turn.
    pub wait: Duration,
    /// The pause between two tries, in milliseconds: one of these, drawn anew each time.
    pub pause_ms: Range<u64>,
}

impl Default for BusyPolicy {
    fn default() -> BusyPolicy {
        BusyPolicy { tries: 15, wait: Duration::from_secs(2), pause_ms: 20..151 }
    }
}

/// How many connections for reading are kept open.
const READERS: usize = 8;

/// A store in a SQLite file.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    access: connect::Access,
    busy_policy: BusyPolicy,
    /// Connections that read and are not in use. They are closed before the one that writes: the last one to go tidies
    /// the log away, and a reader may not.
    readers: Mutex<Vec<Connection>>,
    /// The connection that writes; none after a failure that it might not have survived.
    writer: Mutex<Option<Connection>>,
    /// How far the full text index is behind.
    backlog: IndexBacklog,
}

impl SqliteStore {
    /// Opens a store, and makes it if it is not there: a file, or `sessions.db` in a folder.
    pub fn open(path: &Path) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(path, BusyPolicy::default())
    }

    /// Opens a store with another patience.
    pub fn open_with(path: &Path, patience: BusyPolicy) -> Result<SqliteStore, StoreError> {
        let path = connect::database_file(path);
        connect::create_file(&path)?;
        let store = SqliteStore::new(path, connect::Access::Write, patience);
        let writer = store.retry_while_busy(|| connect::open_writer(&store.path, store.busy_policy.wait))?;
        *store.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        Ok(store)
    }

    /// Opens a store that is there, for reading alone. Others may write to it meanwhile.
    pub fn open_read_only(path: &Path) -> Result<SqliteStore, StoreError> {
        let path = connect::database_file(path);
        let access = connect::read_access(&path);
        let store = SqliteStore::new(path, access, BusyPolicy::default());
        let reader = store
            .retry_while_busy(|| connect::open_reader(&store.path, store.access, store.busy_policy.wait))?;
        store.return_reader(reader);
        Ok(store)
    }

    fn new(path: PathBuf, access: connect::Access, patience: BusyPolicy) -> SqliteStore {
        let (writer, readers) = (Mutex::new(None), Mutex::new(Vec::new()));
        SqliteStore { path, access, busy_policy: patience, writer, readers, backlog: IndexBacklog::default() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs some work in one immediate transaction: all of it is written and synced, or nothing.
    pub(crate) fn write<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.access != connect::Access::Write {
            return Err(StoreError::ReadOnly(self.path.display().to_string()));
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.retry_while_busy(|| {
            let connection = match writer.take() {
                Some(connection) => connection,
                None => connect::open_writer(&self.path, self.busy_policy.wait)?,
            };
            let result = transaction(&connection, "BEGIN IMMEDIATE", &mut work);
            let is_sound =
                !matches!(result, Err(StoreError::Other(_) | StoreError::Broken(_) | StoreError::Full));
            // A connection that saw the disk fail is opened anew.
            if is_sound && connection.is_autocommit() {
                *writer = Some(connection);
            }
            result
        })
    }

    /// Runs some work on one state of the store, beside those who write.
    pub(crate) fn read<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.retry_while_busy(|| {
            let pooled = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match pooled {
                Some(connection) => connection,
                None => connect::open_reader(&self.path, self.access, self.busy_policy.wait)?,
            };
            let result = transaction(&connection, "BEGIN", &mut work);
            if !matches!(result, Err(StoreError::Other(_) | StoreError::Broken(_))) {
                self.return_reader(connection);
            }
            result
        })
    }

    /// Runs some work on the file while none of our connections has it open.
    fn with_exclusive_file<T>(
        &self,
        work: impl Fn(&Path, Duration) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.clear();
        *writer = None;
        work(&self.path, self.busy_policy.wait)
    }

    fn return_reader(&self, connection: Connection) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < READERS && connection.is_autocommit() {
            readers.push(connection);
        }
    }

    /// Tries again while others are in the way.
    fn retry_while_busy<T>(&self, mut work: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        for tried in 1.. {
            match work() {
                Err(StoreError::Busy { .. }) if tried < self.busy_policy.tries => {
                    std::thread::sleep(Duration::from_millis(fastrand::u64(
                        self.busy_policy.pause_ms.clone(),
                    )));
                }
                Err(StoreError::Busy { .. }) => return Err(StoreError::Busy { tries: tried }),
                result => return result,
            }
        }
        Err(StoreError::Busy { tries: self.busy_policy.tries })
    }

    /// Brings the full text index up to date, some messages at a time, so that others get their turn in between.
    fn catch_up_index(&self) -> Result<(), StoreError> {
        let is_behind = self.read_sql(|sql| search::has_pending(sql, &SqliteIndex))?;
        while is_behind
            && self.write_sql(|sql| search::index_pending(sql, &SqliteIndex))? == search::INDEX_BATCH
        {
        }
        self.backlog.clear();
        Ok(())
    }

    fn read_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.read(|connection| work(&mut SqliteExecutor(connection)))
    }

    fn write_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.write(|connection| work(&mut SqliteExecutor(connection)))
    }
}

fn transaction<T>(
    connection: &Connection,
    begin: &str,
    work: &mut impl FnMut(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    connection.prepare_cached(begin).and_then(|mut begin| begin.execute([])).map_err(error::convert)?;
    let commit = || {
        connection.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([])).map_err(error::convert)
    };
    let result = work(connection).and_then(|value| commit().map(|_| value));
    if !connection.is_autocommit() {
        // The first error is the one to tell.
        let _ = connection.execute_batch("ROLLBACK");
    }
    result
}

impl Store for SqliteStore {
    fn commit(&self, batch: &Batch) -> Result<CommitSummary, StoreError> {
        let committed = self.write_sql(|sql| commit::commit(sql, batch))?;
        if self.backlog.is_due(committed.n_new_messages) {
            // What fails here is done before a search.
            let n_indexed = self.write_sql(|sql| search::index_pending(sql, &SqliteIndex)).unwrap_or(0);
            self.backlog.record_indexed(n_indexed);
        }
        Ok(committed)
    }

    sql_store_methods!();

    fn search(&self, find: &SearchSpec) -> Result<SearchHits, StoreError> {
        // Without an index that is up to date a search is slower, and finds the same.
        if self.access == connect::Access::Write {
            let _ = self.catch_up_index();
        }
        self.read_sql(|sql| search::search(sql, &SqliteIndex, find))
    }

    fn collect_garbage(&self) -> Result<u64, StoreError> {
        self.write_sql(|sql| garbage::collect(sql, &SqliteIndex))
    }

    fn check(&self, care: CheckMode) -> Result<Vec<Finding>, StoreError> {
        check::check(self, care)
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        let mut size = self.read_sql(tables::size)?;
        size.n_disk_bytes = connect::n_disk_bytes(&self.path);
        Ok(size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NewEvent, NewSession, Op, SessionId};
    use crate::store::SessionFilter;

    #[test]
    fn a_batch_has_the_file_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let other = Connection::open(store.path()).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        store
            .write(|_| {
                assert!(other.execute_batch("BEGIN IMMEDIATE").is_err());
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn commits_are_synced_in_a_log() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let pragma =
            |connection: &Connection, name| connection.pragma_query_value(None, name, |row| row.get(0));
        store
            .write(|connection| {
                // 2 is FULL: no kill of a process can show the difference, a loss of power would.
                assert_eq!(pragma(connection, "synchronous"), Ok(rusqlite::types::Value::Integer(2)));
                assert_eq!(
                    pragma(connection, "journal_mode"),
                    Ok(rusqlite::types::Value::Text("wal".into()))
                );
                Ok(())
            })
            .unwrap();
    }

    #[test]
    fn a_statement_is_prepared_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let id = SessionId("s".into());
        let new =
            NewSession { id: id.clone(), source: "x".into(), format: "x".into(), parent: None, tip: None };
        store.commit(&Batch { ops: vec![Op::Create(new)], ..Batch::default() }).unwrap();
        for _ in 0..5 {
            let event = NewEvent { kind: "x".into(), body: "{}".into() };
            store.commit(&Batch { ops: vec![Op::AddEvent(id.clone(), event)], ..Batch::default() }).unwrap();
            store.session(&id).unwrap().unwrap();
        }
        let n_prepared_anew = |connection: &Connection| {
            let statement = connection.prepare_cached(tables::SESSION).map_err(error::convert)?;
            assert!(statement.get_status(rusqlite::StatementStatus::Run) >= 5, "it is the one that was used");
            Ok(statement.get_status(rusqlite::StatementStatus::RePrepare))
        };
        assert_eq!(store.write(n_prepared_anew).unwrap(), 0);
        assert_eq!(store.read(n_prepared_anew).unwrap(), 0);
    }

    #[test]
    fn a_file_at_its_limit_is_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let limit = |n_pages: u32| {
            let writer = store.writer.lock().unwrap();
            writer.as_ref().unwrap().pragma_update(None, "max_page_count", n_pages).unwrap();
        };
        let keep = |bytes: Vec<u8>| {
            let id = SessionId(bytes.len().to_string());
            let new = NewSession { id, source: "x".into(), format: "x".into(), parent: None, tip: None };
            store.commit(&Batch { ops: vec![Op::Create(new), Op::PutBlob(bytes)], ..Batch::default() })
        };
        limit(40);
        assert!(matches!(keep(vec![0; 200_000]), Err(StoreError::Full)));
        assert!(store.sessions(&SessionFilter::default()).unwrap().is_empty());
        // The connection was opened anew, without the limit.
        keep(vec![0; 200_000]).unwrap();
        assert_eq!(store.sessions(&SessionFilter::default()).unwrap().len(), 1);
    }
}
