//! A store in a PostgreSQL database, for many users and machines.
//!
//! Batches of different sessions are written concurrently; a session's row is locked while it is written to. If two
//! transactions insert the same message, the second one fails and is retried. A broken connection is replaced. If the
//! reply to a commit is lost, the store asks the server for the transaction's status, so no batch is written twice.

mod connect; //  opens and configures connections
mod error; //    converts PostgreSQL's errors
mod executor; // runs statements on a connection

use std::sync::{Mutex, PoisonError};

use postgres::Config;

use crate::database::retry::{AttemptResult, RetryPolicy};
use crate::database::sql::{Sql, SqlValue, query_row};
use crate::database::sql_store::SqlStore;
use crate::open::OpenMode;
use crate::search::{Index, IndexBacklog, PostgresIndex};
use crate::store::StoreError;
use connect::{ADVISORY_LOCK, PgConnection};

/// The maximum number of idle connections.
const MAX_IDLE_CONNECTIONS: usize = 8;

/// The pauses grow, so that a server has about half a minute to restart.
const RETRY: RetryPolicy = RetryPolicy { tries: 15, pause_ms: 20..151, n_doublings: 5 };

/// For callers with a deadline.
const PROMPT_RETRY: RetryPolicy = RetryPolicy { tries: 4, pause_ms: 20..151, n_doublings: 5 };

/// A store in a PostgreSQL database.
pub(crate) struct PostgresStore {
    config: Config,
    mode: OpenMode,
    /// Idle connections.
    idle: Mutex<Vec<PgConnection>>,
    /// The lag of the full text index.
    backlog: IndexBacklog,
}

impl PostgresStore {
    /// Connects to a database by its address, and creates missing tables in the schema `fanfold`.
    pub(crate) fn open(address: &str, mode: OpenMode) -> Result<PostgresStore, StoreError> {
        let config: Config =
            address.parse().map_err(|error| StoreError::InvalidAddress(format!("{address:?} ({error})")))?;
        let store =
            PostgresStore { config, mode, idle: Mutex::new(Vec::new()), backlog: IndexBacklog::default() };
        let mut connection = connect::connect(&store.config)?;
        match mode {
            OpenMode::Write | OpenMode::WritePromptly => {
                store.retry_policy().retry_while_busy(|| connect::migrate(&mut connection.client))?;
            }
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

    fn retry_policy(&self) -> &'static RetryPolicy {
        if self.mode == OpenMode::WritePromptly { &PROMPT_RETRY } else { &RETRY }
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

    /// Runs `work` in a transaction after taking the advisory lock with a statement, shared or exclusive.
    fn write_locked<T>(
        &self,
        lock: &str,
        work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if !self.is_writable() {
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

    /// Repeats an attempt on a connection that works. Fails if the server cannot be reached for too long.
    fn retry<T>(&self, mut work: impl FnMut(&mut PgConnection) -> AttemptResult<T>) -> Result<T, StoreError> {
        self.retry_policy().retry(|| {
            let mut connection = match self.checkout() {
                Ok(connection) => connection,
                Err(error) => return AttemptResult::Retry(error),
            };
            let result = work(&mut connection);
            match &result {
                AttemptResult::Final(Ok(_)) => self.checkin(connection),
                AttemptResult::Final(Err(_)) => self.roll_back(connection),
                // The connection is broken.
                AttemptResult::Retry(_) => {}
            }
            result
        })
    }

    fn roll_back(&self, mut connection: PgConnection) {
        // If the rollback fails, drop the connection; the server then rolls back.
        if connection.client.batch_execute("ROLLBACK").is_ok() {
            self.checkin(connection);
        }
    }

    /// Asks the server on a new connection whether a transaction was committed.
    fn was_committed(&self, transaction: i64) -> Result<bool, StoreError> {
        self.retry_policy().retry_while_busy(|| {
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

impl SqlStore for PostgresStore {
    const INDEX: &'static dyn Index = &PostgresIndex;

    fn is_writable(&self) -> bool {
        self.mode != OpenMode::Read
    }

    fn backlog(&self) -> &IndexBacklog {
        &self.backlog
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

    fn write_alone<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        // A concurrent batch could refer to a message that is being deleted.
        self.write_locked("SELECT pg_advisory_xact_lock($1)", work)
    }

    fn n_disk_bytes(&self, sql: &mut dyn Sql) -> Result<u64, StoreError> {
        let text = "SELECT CAST(sum(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fanfold' AND c.relkind = 'r'";
        let n_bytes = query_row(sql, text, &[])?.map(|mut row| row.opt_int()).transpose()?.flatten();
        Ok(n_bytes.unwrap_or(0).unsigned_abs())
    }
}
