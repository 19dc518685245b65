//! A store in a PostgreSQL database, for many users and machines.
//!
//! Batches of different sessions are written concurrently; a session's row is locked while it is written to. If two
//! transactions insert the same message, the second one fails and is retried. A broken connection is replaced. If the
//! reply to a commit is lost, the store asks the server for the transaction's status, so no batch is written twice.

mod connect; //  opens and configures connections
mod error; //    converts PostgreSQL's errors
mod executor; // runs statements on a connection

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use postgres::Config;

use crate::database::sql::{Sql, SqlValue};
use crate::database::store_methods::sql_store_methods;
use crate::database::{commit, garbage, tables};
use crate::doctor;
use crate::doctor::{CheckMode, Finding, RepairStatus};
use crate::model::{Batch, CommitSummary};
use crate::open::OpenMode;
use crate::search::{self, IndexBacklog, PostgresIndex, SearchHits, SearchSpec};
use crate::store::{Store, StoreError, StoreSize};
use connect::{ADVISORY_LOCK, PgConnection};

/// The maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 8;

/// The maximum number of attempts. The pauses grow, so that a server has about half a minute to restart.
const MAX_TRIES: u32 = 15;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    config: Config,
    mode: OpenMode,
    /// Idle connections.
    idle: Mutex<Vec<PgConnection>>,
    /// The lag of the full text index.
    backlog: IndexBacklog,
}

/// The result of one attempt of a transaction.
enum AttemptResult<T> {
    /// The transaction succeeded, or failed with an error that is not due to a broken connection.
    Final(Result<T, StoreError>),
    /// The connection broke and nothing was written: try again.
    Retry(StoreError),
}

impl PostgresStore {
    /// Connects to a database by its address, and creates missing tables in the schema `fanfold`.
    pub fn open(address: &str, mode: OpenMode) -> Result<PostgresStore, StoreError> {
        let config: Config =
            address.parse().map_err(|error| StoreError::InvalidAddress(format!("{address:?} ({error})")))?;
        let store =
            PostgresStore { config, mode, idle: Mutex::new(Vec::new()), backlog: IndexBacklog::default() };
        let mut connection = connect::connect(&store.config)?;
        match mode {
            OpenMode::Write => retry_while_busy(|| connect::migrate(&mut connection.client))?,
            OpenMode::Read => {
                let found = connect::version(&mut connection.client)?;
                if found == 0 {
                    return Err(StoreError::NoStore);
                }
                let known = crate::schema::newest_version(crate::schema::POSTGRES);
                if !crate::schema::pending_steps(crate::schema::POSTGRES, found)?.is_empty() {
                    return Err(StoreError::TooOld { found, known });
                }
            }
        }
        store.checkin(connection);
        Ok(store)
    }

    fn checkout(&self) -> Result<PgConnection, StoreError> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(connection) if connection.client.is_closed() => {}
                Some(connection) => return Ok(connection),
                None => return connect::connect(&self.config),
            }
        }
    }

    fn checkin(&self, connection: PgConnection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE_CONNECTIONS && !connection.client.is_closed() {
            idle.push(connection);
        }
    }

    fn read_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.retry(|connection| {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let result = self::begin(connection, begin).and_then(|()| work(connection)).and_then(|value| {
                connection.client.batch_execute("COMMIT").map_err(error::convert)?;
                Ok(value)
            });
            match result {
                Err(error) if connection.client.is_closed() => AttemptResult::Retry(error),
                result => AttemptResult::Final(result),
            }
        })
    }

    fn write_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.write_locked("SELECT pg_advisory_xact_lock_shared($1)", work)
    }

    /// Runs `work` in a transaction after taking the advisory lock with a statement, shared or exclusive.
    fn write_locked<T>(
        &self,
        lock: &str,
        work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.mode == OpenMode::Read {
            return Err(StoreError::ReadOnly("of this database".into()));
        }
        self.retry(|connection| {
            let started = begin(connection, "BEGIN ISOLATION LEVEL READ COMMITTED").and_then(|()| {
                connection.client.execute(lock, &[&ADVISORY_LOCK]).map_err(error::convert)?;
                transaction_id(connection)
            });
            let result = started.and_then(|transaction| Ok((transaction, work(connection)?)));
            let (transaction, value) = match result {
                Ok(success) => success,
                Err(error) if connection.client.is_closed() => return AttemptResult::Retry(error),
                Err(error) => return AttemptResult::Final(Err(error)),
            };
            let Err(error) = connection.client.batch_execute("COMMIT") else {
                return AttemptResult::Final(Ok(value));
            };
            // The commit may have succeeded although its reply was lost, so ask the server.
            match self.was_committed(transaction) {
                Ok(true) => AttemptResult::Final(Ok(value)),
                Ok(false) if error.code().is_none() => AttemptResult::Retry(error::convert(error)),
                Ok(false) => AttemptResult::Final(Err(error::convert(error))),
                Err(error) => AttemptResult::Final(Err(error)),
            }
        })
    }

    /// Brings the full text index up to date in small transactions.
    fn catch_up_index(&self) -> Result<(), StoreError> {
        let is_behind = self.read_sql(|sql| search::has_pending(sql, &PostgresIndex))?;
        while is_behind
            && self.write_sql(|sql| search::index_pending(sql, &PostgresIndex))? == search::INDEX_BATCH
        {
        }
        self.backlog.clear();
        Ok(())
    }

    fn retry<T>(&self, mut work: impl FnMut(&mut PgConnection) -> AttemptResult<T>) -> Result<T, StoreError> {
        let mut last = None;
        for tried in 0..MAX_TRIES {
            if tried > 0 {
                pause(tried);
            }
            let mut connection = match self.checkout() {
                Ok(connection) => connection,
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            match work(&mut connection) {
                AttemptResult::Final(Err(StoreError::Busy { .. })) => {
                    last = Some(StoreError::Busy { tries: tried + 1 });
                    self.roll_back(connection);
                }
                AttemptResult::Final(Err(error)) => {
                    self.roll_back(connection);
                    return Err(error);
                }
                AttemptResult::Final(Ok(value)) => {
                    self.checkin(connection);
                    return Ok(value);
                }
                AttemptResult::Retry(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(StoreError::Busy { tries: MAX_TRIES }))
    }

    fn roll_back(&self, mut connection: PgConnection) {
        // If the rollback fails, drop the connection; the server then rolls back.
        if connection.client.batch_execute("ROLLBACK").is_ok() {
            self.checkin(connection);
        }
    }

    /// Asks the server on a new connection whether a transaction was committed.
    fn was_committed(&self, transaction: i64) -> Result<bool, StoreError> {
        retry_while_busy(|| {
            // Retry after any error, because the server may be restarting.
            let mut connection = connect::connect(&self.config).map_err(|_| StoreError::Busy { tries: 1 })?;
            let rows = connection.query("SELECT txid_status($1)", &[SqlValue::Int(transaction)]);
            let row = rows.map_err(|_| StoreError::Busy { tries: 1 })?.into_iter().next();
            match row.map(|mut row| row.text()).transpose()?.as_deref() {
                Some("committed") => Ok(true),
                Some("aborted") => Ok(false),
                // Still in progress: the server has not noticed the lost connection yet.
                _ => Err(StoreError::Busy { tries: 1 }),
            }
        })
    }
}

fn begin(connection: &mut PgConnection, begin: &str) -> Result<(), StoreError> {
    connection.client.batch_execute(begin).map_err(error::convert)
}

fn transaction_id(connection: &mut PgConnection) -> Result<i64, StoreError> {
    let row = connection.query("SELECT txid_current()", &[])?.into_iter().next();
    row.ok_or_else(|| StoreError::Corrupt("a transaction has no id".into()))?.int()
}

/// Sleeps with exponential backoff: 20–150 ms after the first attempt, doubling up to 32 times that.
fn pause(tried: u32) {
    let ms = fastrand::u64(20..151) << (tried - 1).min(5);
    std::thread::sleep(Duration::from_millis(ms));
}

fn retry_while_busy<T>(mut work: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for tried in 1..MAX_TRIES {
        match work() {
            Err(StoreError::Busy { .. }) => pause(tried),
            result => return result,
        }
    }
    work()
}

impl Store for PostgresStore {
    fn commit(&self, batch: &Batch) -> Result<CommitSummary, StoreError> {
        let committed = self.write_sql(|sql| commit::commit(sql, batch))?;
        if self.backlog.is_due(committed.n_new_messages) {
            // Ignore errors: the next search indexes the messages, too.
            let n_indexed = self.write_sql(|sql| search::index_pending(sql, &PostgresIndex)).unwrap_or(0);
            self.backlog.record_indexed(n_indexed);
        }
        Ok(committed)
    }

    sql_store_methods!();

    fn search(&self, spec: &SearchSpec) -> Result<SearchHits, StoreError> {
        // Ignore errors: with an outdated index a search is slower, but finds the same.
        if self.mode == OpenMode::Write {
            let _ = self.catch_up_index();
        }
        self.read_sql(|sql| search::search(sql, &PostgresIndex, spec))
    }

    fn collect_garbage(&self) -> Result<u64, StoreError> {
        // Exclusive, because a concurrent batch could refer to a message that is being deleted.
        self.write_locked("SELECT pg_advisory_xact_lock($1)", |sql| garbage::collect(sql, &PostgresIndex))
    }

    fn check(&self, mode: CheckMode) -> Result<Vec<Finding>, StoreError> {
        match mode {
            CheckMode::Report => {
                self.read_sql(|sql| doctor::check(sql, &PostgresIndex, mode, RepairStatus::Impossible))
            }
            CheckMode::Repair => self.write_locked("SELECT pg_advisory_xact_lock($1)", |sql| {
                doctor::check(sql, &PostgresIndex, mode, RepairStatus::Impossible)
            }),
        }
    }

    fn size(&self) -> Result<StoreSize, StoreError> {
        self.read_sql(|sql| {
            let mut size = tables::size(sql)?;
            let text = "SELECT CAST(sum(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fanfold' AND c.relkind = 'r'";
            let row = sql.query(text, &[])?.into_iter().next();
            let n_bytes = row.map(|mut row| row.opt_int()).transpose()?.flatten().unwrap_or(0);
            size.n_disk_bytes = n_bytes.unsigned_abs();
            Ok(size)
        })
    }
}
