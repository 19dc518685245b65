//! A store in a PostgreSQL database, for many users and machines.
//!
//! Batches of different sessions are written side by side; a session's row is held while it is written to. Where two
//! write the same message at once, the second finds it out and begins again. A connection that breaks is made anew, and
//! a commit whose answer was lost is asked for: it is never written twice.

mod connect; // connections, and what they are set to
mod error; //   what PostgreSQL's errors mean here
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
use connect::{ADVISORY_LOCK, Connection};

/// How many connections are kept open.
const CONNECTIONS: usize = 8;

/// How often something is tried; the pauses grow, so that a server has half a minute to come back.
const TRIES: u32 = 15;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    config: Config,
    mode: OpenMode,
    /// Connections that are not in use.
    idle: Mutex<Vec<Connection>>,
    /// How far the full text index is behind.
    backlog: IndexBacklog,
}

/// What becomes of a piece of work whose connection broke.
enum Attempt<T> {
    /// It is done, or it failed and would fail again.
    Final(Result<T, StoreError>),
    /// It was not written: the same again.
    Retry(StoreError),
}

impl PostgresStore {
    /// Connects to a database by its address, and makes the tables if they are not there: in a schema `fanfold`.
    pub fn open(address: &str, mode: OpenMode) -> Result<PostgresStore, StoreError> {
        let config: Config =
            address.parse().map_err(|error| StoreError::Address(format!("{address:?} ({error})")))?;
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

    fn checkout(&self) -> Result<Connection, StoreError> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(connection) if connection.client.is_closed() => {}
                Some(connection) => return Ok(connection),
                None => return connect::connect(&self.config),
            }
        }
    }

    fn checkin(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < CONNECTIONS && !connection.client.is_closed() {
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
                Err(error) if connection.client.is_closed() => Attempt::Retry(error),
                result => Attempt::Final(result),
            }
        })
    }

    fn write_sql<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.write_locked("SELECT pg_advisory_xact_lock_shared($1)", work)
    }

    /// Runs some work in a transaction, beside others or alone as the guard says.
    fn write_locked<T>(
        &self,
        guard: &str,
        work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.mode == OpenMode::Read {
            return Err(StoreError::ReadOnly("of this database".into()));
        }
        self.retry(|connection| {
            let begun = begin(connection, "BEGIN ISOLATION LEVEL READ COMMITTED").and_then(|()| {
                connection.client.execute(guard, &[&ADVISORY_LOCK]).map_err(error::convert)?;
                transaction_id(connection)
            });
            let done = begun.and_then(|transaction| Ok((transaction, work(connection)?)));
            let (transaction, value) = match done {
                Ok(done) => done,
                Err(error) if connection.client.is_closed() => return Attempt::Retry(error),
                Err(error) => return Attempt::Final(Err(error)),
            };
            let Err(error) = connection.client.batch_execute("COMMIT") else {
                return Attempt::Final(Ok(value));
            };
            // The answer to the commit may have been lost; what became of it is known to the server.
            match self.was_committed(transaction) {
                Ok(true) => Attempt::Final(Ok(value)),
                Ok(false) if error.code().is_none() => Attempt::Retry(error::convert(error)),
                Ok(false) => Attempt::Final(Err(error::convert(error))),
                Err(error) => Attempt::Final(Err(error)),
            }
        })
    }

    /// Brings the full text index up to date, some messages at a time.
    fn catch_up_index(&self) -> Result<(), StoreError> {
        let is_behind = self.read_sql(|sql| search::has_pending(sql, &PostgresIndex))?;
        while is_behind
            && self.write_sql(|sql| search::index_pending(sql, &PostgresIndex))? == search::INDEX_BATCH
        {
        }
        self.backlog.clear();
        Ok(())
    }

    fn retry<T>(&self, mut work: impl FnMut(&mut Connection) -> Attempt<T>) -> Result<T, StoreError> {
        let mut last = None;
        for tried in 0..TRIES {
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
                Attempt::Final(Err(StoreError::Busy { .. })) => {
                    last = Some(StoreError::Busy { tries: tried + 1 });
                    self.roll_back(connection);
                }
                Attempt::Final(Err(error)) => {
                    self.roll_back(connection);
                    return Err(error);
                }
                Attempt::Final(Ok(value)) => {
                    self.checkin(connection);
                    return Ok(value);
                }
                Attempt::Retry(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(StoreError::Busy { tries: TRIES }))
    }

    fn roll_back(&self, mut connection: Connection) {
        // A connection that can't even do that is dropped, and the server rolls back by itself.
        if connection.client.batch_execute("ROLLBACK").is_ok() {
            self.checkin(connection);
        }
    }

    /// Asks a new connection what became of a transaction.
    fn was_committed(&self, transaction: i64) -> Result<bool, StoreError> {
        retry_while_busy(|| {
            // Whatever the reason that the server can't be asked, it may come back.
            let mut connection = connect::connect(&self.config).map_err(|_| StoreError::Busy { tries: 1 })?;
            let rows = connection.query("SELECT txid_status($1)", &[SqlValue::Int(transaction)]);
            let row = rows.map_err(|_| StoreError::Busy { tries: 1 })?.into_iter().next();
            match row.map(|mut row| row.text()).transpose()?.as_deref() {
                Some("committed") => Ok(true),
                Some("aborted") => Ok(false),
                // Still running: the server has not noticed yet that we are gone.
                _ => Err(StoreError::Busy { tries: 1 }),
            }
        })
    }
}

fn begin(connection: &mut Connection, begin: &str) -> Result<(), StoreError> {
    connection.client.batch_execute(begin).map_err(error::convert)
}

fn transaction_id(connection: &mut Connection) -> Result<i64, StoreError> {
    let row = connection.query("SELECT txid_current()", &[])?.into_iter().next();
    row.ok_or_else(|| StoreError::Broken("a transaction has no number".into()))?.int()
}

/// 20–150 ms at first, twice as much each time, at most a few seconds.
fn pause(tried: u32) {
    let ms = fastrand::u64(20..151) << (tried - 1).min(5);
    std::thread::sleep(Duration::from_millis(ms));
}

fn retry_while_busy<T>(mut work: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for tried in 1..TRIES {
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
            // What fails here is done before a search.
            let n_indexed = self.write_sql(|sql| search::index_pending(sql, &PostgresIndex)).unwrap_or(0);
            self.backlog.record_indexed(n_indexed);
        }
        Ok(committed)
    }

    sql_store_methods!();

    fn search(&self, find: &SearchSpec) -> Result<SearchHits, StoreError> {
        // Without an index that is up to date a search is slower, and finds the same.
        if self.mode == OpenMode::Write {
            let _ = self.catch_up_index();
        }
        self.read_sql(|sql| search::search(sql, &PostgresIndex, find))
    }

    fn collect_garbage(&self) -> Result<u64, StoreError> {
        // Alone: a batch could point at a message that is just being removed.
        self.write_locked("SELECT pg_advisory_xact_lock($1)", |sql| garbage::collect(sql, &PostgresIndex))
    }

    fn check(&self, care: CheckMode) -> Result<Vec<Finding>, StoreError> {
        match care {
            CheckMode::Report => {
                self.read_sql(|sql| doctor::check(sql, &PostgresIndex, care, RepairStatus::Impossible))
            }
            CheckMode::Repair => self.write_locked("SELECT pg_advisory_xact_lock($1)", |sql| {
                doctor::check(sql, &PostgresIndex, care, RepairStatus::Impossible)
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
