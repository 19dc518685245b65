//! A store in one SQLite file, or in memory.
//!
//! One connection writes, and others read concurrently. A batch is one immediate transaction in the write-ahead log,
//! synced before it is acknowledged. A store in memory has one connection, which also reads.

mod connect; //  opens and configures connections
mod error; //    converts SQLite's errors
mod executor; // runs statements on a connection
mod check; //    checks the file and its contents
mod salvage; //  writes a new file with the readable rows of a damaged one

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

use crate::database::retry::RetryPolicy;
use crate::database::sql::Sql;
use crate::database::sql_store::SqlStore;
use crate::doctor::{CheckMode, Finding};
use crate::search::{Index, IndexBacklog, SqliteIndex};
use crate::store::StoreError;
pub(crate) use connect::database_file;
use executor::SqliteExecutor;

/// The policy for waiting while other processes write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusyPolicy {
    /// The maximum number of attempts.
    pub tries: u32,
    /// The time that one attempt waits for the write lock.
    pub wait: Duration,
    /// The range of the random pause between two attempts, in milliseconds.
    pub pause_ms: Range<u64>,
}

impl Default for BusyPolicy {
    fn default() -> BusyPolicy {
        BusyPolicy { tries: 15, wait: Duration::from_secs(2), pause_ms: 20..151 }
    }
}

impl BusyPolicy {
    /// The policy of a caller with a deadline.
    pub(crate) fn prompt() -> BusyPolicy {
        BusyPolicy { tries: 3, wait: Duration::from_millis(300), ..BusyPolicy::default() }
    }
}

/// The maximum number of idle reading connections.
const MAX_IDLE_READERS: usize = 8;

/// A store in a SQLite file, or in memory.
#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    access: connect::Access,
    busy_policy: BusyPolicy,
    /// Idle reading connections. Dropped before `writer`: the last connection to close removes the log, which a
    /// read-only one cannot do.
    readers: Mutex<Vec<Connection>>,
    /// The writing connection; `None` after an error that may have invalidated it.
    writer: Mutex<Option<Connection>>,
    /// The lag of the full text index.
    backlog: IndexBacklog,
}

impl SqliteStore {
    /// Opens a store or creates a missing one: a file, or `sessions.db` in a folder.
    pub fn open(path: &Path) -> Result<SqliteStore, StoreError> {
        SqliteStore::open_with(path, BusyPolicy::default())
    }

    /// Opens a store with a policy for waiting on other writers.
    pub fn open_with(path: &Path, busy_policy: BusyPolicy) -> Result<SqliteStore, StoreError> {
        let path = connect::database_file(path);
        connect::create_file(&path)?;
        let store = SqliteStore::new(path, connect::Access::Write, busy_policy);
        let writer = store.retry_while_busy(|| connect::open_writer(&store.path, store.busy_policy.wait))?;
        *store.writer.lock().unwrap_or_else(PoisonError::into_inner) = Some(writer);
        Ok(store)
    }

    /// Opens an existing store for reading. Other processes may write to it concurrently.
    pub fn open_read_only(path: &Path) -> Result<SqliteStore, StoreError> {
        let path = connect::database_file(path);
        let access = connect::read_access(&path);
        let store = SqliteStore::new(path, access, BusyPolicy::default());
        let (reader, may_stay) = store
            .retry_while_busy(|| connect::open_reader(&store.path, store.access, store.busy_policy.wait))?;
        if may_stay {
            store.return_reader(reader);
        }
        Ok(store)
    }

    /// Returns an existing store for [`check`](crate::Store::check), without opening its file, which may be damaged.
    pub(crate) fn to_check(path: &Path, mode: CheckMode) -> SqliteStore {
        let path = connect::database_file(path);
        let access = match mode {
            CheckMode::Report => connect::read_access(&path),
            CheckMode::Repair => connect::Access::Write,
        };
        SqliteStore::new(path, access, BusyPolicy::default())
    }

    /// Creates an empty store in memory, for tests and for use without files.
    pub fn in_memory() -> SqliteStore {
        SqliteStore::new(connect::MEMORY.into(), connect::Access::Memory, BusyPolicy::default())
    }

    fn new(path: PathBuf, access: connect::Access, busy_policy: BusyPolicy) -> SqliteStore {
        let (writer, readers) = (Mutex::new(None), Mutex::new(Vec::new()));
        SqliteStore { path, access, busy_policy, writer, readers, backlog: IndexBacklog::default() }
    }

    /// The database file; `:memory:` for a store in memory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `work` in one immediate transaction, which is written and synced completely or not at all.
    pub(crate) fn write<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !self.is_writable() {
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
                !matches!(result, Err(StoreError::Other(_) | StoreError::Corrupt(_) | StoreError::DiskFull));
            // After a disk error the connection is not reused. In memory, it is the only one.
            if self.access == connect::Access::Memory || (is_sound && connection.is_autocommit()) {
                *writer = Some(connection);
            }
            result
        })
    }

    /// Runs `work` on a snapshot of the store, concurrently with writers.
    pub(crate) fn read<T>(
        &self,
        mut work: impl FnMut(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.access == connect::Access::Memory {
            return self.write(work);
        }
        self.retry_while_busy(|| {
            let pooled = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let (connection, may_stay) = match pooled {
                Some(connection) => (connection, true),
                None => connect::open_reader(&self.path, self.access, self.busy_policy.wait)?,
            };
            let result = transaction(&connection, "BEGIN", &mut work);
            if may_stay && !matches!(result, Err(StoreError::Other(_) | StoreError::Corrupt(_))) {
                self.return_reader(connection);
            }
            result
        })
    }

    /// Runs `work` on the file while this store has no connection to it.
    fn with_exclusive_file<T>(
        &self,
        work: impl Fn(&Path, Duration) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.access == connect::Access::Memory {
            return Err(StoreError::Corrupt("a store in memory has no file to rebuild".into()));
        }
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.clear();
        *writer = None;
        work(&self.path, self.busy_policy.wait)
    }

    /// Returns the schema of a new store.
    fn expected_schema(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        check::schema(&connect::open_writer(Path::new(connect::MEMORY), self.busy_policy.wait)?)
    }

    fn return_reader(&self, connection: Connection) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() < MAX_IDLE_READERS && connection.is_autocommit() {
            readers.push(connection);
        }
    }

    /// Retries `work` while the database is locked.
    fn retry_while_busy<T>(&self, work: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
        let BusyPolicy { tries, pause_ms, .. } = self.busy_policy.clone();
        RetryPolicy { tries, pause_ms, n_doublings: 0 }.retry_while_busy(work)
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
        // Return the first error, not that of the rollback.
        let _ = connection.execute_batch("ROLLBACK");
    }
    result
}

impl SqlStore for SqliteStore {
    const INDEX: &'static dyn Index = &SqliteIndex;

    fn is_writable(&self) -> bool {
        matches!(self.access, connect::Access::Write | connect::Access::Memory)
    }

    fn backlog(&self) -> &IndexBacklog {
        &self.backlog
    }

    fn read_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.read(|connection| work(&mut SqliteExecutor(connection)))
    }

    fn write_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.write(|connection| work(&mut SqliteExecutor(connection)))
    }

    fn write_alone<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        // SQLite runs one writing transaction at a time.
        self.write_sql(work)
    }

    fn n_disk_bytes(&self, _sql: &mut dyn Sql) -> Result<u64, StoreError> {
        Ok(connect::n_disk_bytes(&self.path))
    }

    fn check_database(&self, mode: CheckMode) -> Result<Vec<Finding>, StoreError> {
        check::check(self, mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::tables;
    use crate::model::{Batch, NewEvent, NewSession, Op, SessionId};
    use crate::store::{SessionFilter, Store};

    #[test]
    fn batch_takes_the_write_lock_at_its_start() {
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
    fn commits_are_synced_to_the_write_ahead_log() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let pragma =
            |connection: &Connection, name| connection.pragma_query_value(None, name, |row| row.get(0));
        store
            .write(|connection| {
                // 2 is FULL. Killing a process cannot show the difference, only a power loss.
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
    fn statements_are_prepared_once() {
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
        let n_reprepared = |connection: &Connection| {
            let statement = connection.prepare_cached(tables::SELECT_SESSION).map_err(error::convert)?;
            assert!(statement.get_status(rusqlite::StatementStatus::Run) >= 5, "not the cached statement");
            Ok(statement.get_status(rusqlite::StatementStatus::RePrepare))
        };
        assert_eq!(store.write(n_reprepared).unwrap(), 0);
        assert_eq!(store.read(n_reprepared).unwrap(), 0);
    }

    #[test]
    fn page_limit_is_reported_as_a_full_disk() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path()).unwrap();
        let limit = |n_pages: u32| {
            let writer = store.writer.lock().unwrap();
            writer.as_ref().unwrap().pragma_update(None, "max_page_count", n_pages).unwrap();
        };
        let commit_blob = |bytes: Vec<u8>| {
            let id = SessionId(bytes.len().to_string());
            let new = NewSession { id, source: "x".into(), format: "x".into(), parent: None, tip: None };
            store.commit(&Batch { ops: vec![Op::Create(new), Op::PutBlob(bytes)], ..Batch::default() })
        };
        limit(40);
        assert!(matches!(commit_blob(vec![0; 200_000]), Err(StoreError::DiskFull)));
        assert!(store.sessions(&SessionFilter::default()).unwrap().is_empty());
        // The failed connection was replaced by one without the limit.
        commit_blob(vec![0; 200_000]).unwrap();
        assert_eq!(store.sessions(&SessionFilter::default()).unwrap().len(), 1);
    }
}
