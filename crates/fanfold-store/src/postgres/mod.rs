//! A store in a PostgreSQL database, for many users and machines.
//!
//! Batches of different sessions are written side by side; a session's row is held while it is written to. Where two
//! write the same message at once, the second finds it out and begins again. A connection that breaks is made anew, and
//! a commit whose answer was lost is asked for: it is never written twice.

mod connect; // connections, and what they are set to
mod error; //   what PostgreSQL's errors mean here
mod run; //     statements on a connection

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use postgres::Config;

use crate::batch::{Batch, Committed};
use crate::by_tables::by_tables;
use crate::doctor::{Care, Cure, Finding};
use crate::open::Purpose;
use crate::search::{self, Find, Hits, InPostgres, Lag};
use crate::sql::{Sql, Value};
use crate::store::{Size, Store, StoreError};
use crate::{commit, doctor, sweep, tables};
use connect::{Connection, GUARD};

/// How many connections are kept open.
const CONNECTIONS: usize = 8;

/// How often something is tried; the pauses grow, so that a server has half a minute to come back.
const TRIES: u32 = 15;

/// A store in a PostgreSQL database.
pub struct PostgresStore {
    config: Config,
    purpose: Purpose,
    /// Connections that are not in use.
    idle: Mutex<Vec<Connection>>,
    /// How far the full text index is behind.
    lag: Lag,
}

/// What becomes of a piece of work whose connection broke.
enum Outcome<T> {
    /// It is done, or it failed and would fail again.
    Known(Result<T, StoreError>),
    /// It was not written: the same again.
    Again(StoreError),
}

impl PostgresStore {
    /// Connects to a database by its address, and makes the tables if they are not there: in a schema `fanfold`.
    pub fn open(address: &str, purpose: Purpose) -> Result<PostgresStore, StoreError> {
        let config: Config =
            address.parse().map_err(|error| StoreError::Address(format!("{address:?} ({error})")))?;
        let store = PostgresStore { config, purpose, idle: Mutex::new(Vec::new()), lag: Lag::default() };
        let mut connection = connect::connect(&store.config)?;
        match purpose {
            Purpose::Write => patiently(|| connect::bring_up(&mut connection.client))?,
            Purpose::Read => {
                let found = connect::version(&mut connection.client)?;
                if found == 0 {
                    return Err(StoreError::NoStore);
                }
                let known = crate::schema::known(crate::schema::POSTGRES);
                if !crate::schema::missing(crate::schema::POSTGRES, found)?.is_empty() {
                    return Err(StoreError::TooOld { found, known });
                }
            }
        }
        store.put_back(connection);
        Ok(store)
    }

    fn take(&self) -> Result<Connection, StoreError> {
        loop {
            let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match idle {
                Some(connection) if connection.client.is_closed() => {}
                Some(connection) => return Ok(connection),
                None => return connect::connect(&self.config),
            }
        }
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < CONNECTIONS && !connection.client.is_closed() {
            idle.push(connection);
        }
    }

    fn reading<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.trying(|connection| {
            let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
            let result = begin_with(connection, begin).and_then(|()| work(connection)).and_then(|value| {
                connection.client.batch_execute("COMMIT").map_err(error::of)?;
                Ok(value)
            });
            match result {
                Err(error) if connection.client.is_closed() => Outcome::Again(error),
                result => Outcome::Known(result),
            }
        })
    }

    fn writing<T>(&self, work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.guarded("SELECT pg_advisory_xact_lock_shared($1)", work)
    }

    /// Runs some work in a transaction, beside others or alone as the guard says.
    fn guarded<T>(
        &self,
        guard: &str,
        work: impl Fn(&mut dyn Sql) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if self.purpose == Purpose::Read {
            return Err(StoreError::ReadOnly("of this database".into()));
        }
        self.trying(|connection| {
            let begun = begin_with(connection, "BEGIN ISOLATION LEVEL READ COMMITTED").and_then(|()| {
                connection.client.execute(guard, &[&GUARD]).map_err(error::of)?;
                number_of_transaction(connection)
            });
            let done = begun.and_then(|transaction| Ok((transaction, work(connection)?)));
            let (transaction, value) = match done {
                Ok(done) => done,
                Err(error) if connection.client.is_closed() => return Outcome::Again(error),
                Err(error) => return Outcome::Known(Err(error)),
            };
            let Err(error) = connection.client.batch_execute("COMMIT") else {
                return Outcome::Known(Ok(value));
            };
            // The answer to the commit may have been lost; what became of it is known to the server.
            match self.was_committed(transaction) {
                Ok(true) => Outcome::Known(Ok(value)),
                Ok(false) if error.code().is_none() => Outcome::Again(error::of(error)),
                Ok(false) => Outcome::Known(Err(error::of(error))),
                Err(error) => Outcome::Known(Err(error)),
            }
        })
    }

    /// Brings the full text index up to date, some messages at a time.
    fn index_all(&self) -> Result<(), StoreError> {
        let is_behind = self.reading(|sql| search::is_behind(sql, &InPostgres))?;
        while is_behind
            && self.writing(|sql| search::index_some(sql, &InPostgres))? == search::INDEXED_AT_ONCE
        {}
        self.lag.caught_up();
        Ok(())
    }

    fn trying<T>(&self, mut work: impl FnMut(&mut Connection) -> Outcome<T>) -> Result<T, StoreError> {
        let mut last = None;
        for tried in 0..TRIES {
            if tried > 0 {
                pause(tried);
            }
            let mut connection = match self.take() {
                Ok(connection) => connection,
                Err(error) => {
                    last = Some(error);
                    continue;
                }
            };
            match work(&mut connection) {
                Outcome::Known(Err(StoreError::Busy { .. })) => {
                    last = Some(StoreError::Busy { tries: tried + 1 });
                    self.roll_back(connection);
                }
                Outcome::Known(Err(error)) => {
                    self.roll_back(connection);
                    return Err(error);
                }
                Outcome::Known(Ok(value)) => {
                    self.put_back(connection);
                    return Ok(value);
                }
                Outcome::Again(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or(StoreError::Busy { tries: TRIES }))
    }

    fn roll_back(&self, mut connection: Connection) {
        // A connection that can't even do that is dropped, and the server rolls back by itself.
        if connection.client.batch_execute("ROLLBACK").is_ok() {
            self.put_back(connection);
        }
    }

    /// Asks a new connection what became of a transaction.
    fn was_committed(&self, transaction: i64) -> Result<bool, StoreError> {
        patiently(|| {
            // Whatever the reason that the server can't be asked, it may come back.
            let mut connection = connect::connect(&self.config).map_err(|_| StoreError::Busy { tries: 1 })?;
            let rows = connection.rows("SELECT txid_status($1)", &[Value::Int(transaction)]);
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

fn begin_with(connection: &mut Connection, begin: &str) -> Result<(), StoreError> {
    connection.client.batch_execute(begin).map_err(error::of)
}

fn number_of_transaction(connection: &mut Connection) -> Result<i64, StoreError> {
    let row = connection.rows("SELECT txid_current()", &[])?.into_iter().next();
    row.ok_or_else(|| StoreError::Broken("a transaction has no number".into()))?.int()
}

/// 20–150 ms at first, twice as much each time, at most a few seconds.
fn pause(tried: u32) {
    let ms = fastrand::u64(20..151) << (tried - 1).min(5);
    std::thread::sleep(Duration::from_millis(ms));
}

fn patiently<T>(mut work: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    for tried in 1..TRIES {
        match work() {
            Err(StoreError::Busy { .. }) => pause(tried),
            result => return result,
        }
    }
    work()
}

impl Store for PostgresStore {
    fn commit(&self, batch: &Batch) -> Result<Committed, StoreError> {
        let committed = self.writing(|sql| commit::commit(sql, batch))?;
        if self.lag.is_due(committed.n_new) {
            // What fails here is done before a search.
            let n_indexed = self.writing(|sql| search::index_some(sql, &InPostgres)).unwrap_or(0);
            self.lag.indexed(n_indexed);
        }
        Ok(committed)
    }

    by_tables!();

    fn find(&self, find: &Find) -> Result<Hits, StoreError> {
        // Without an index that is up to date a search is slower, and finds the same.
        if self.purpose == Purpose::Write {
            let _ = self.index_all();
        }
        self.reading(|sql| search::find(sql, &InPostgres, find))
    }

    fn sweep(&self) -> Result<u64, StoreError> {
        // Alone: a batch could point at a message that is just being removed.
        self.guarded("SELECT pg_advisory_xact_lock($1)", |sql| sweep::sweep(sql, &InPostgres))
    }

    fn examine(&self, care: Care) -> Result<Vec<Finding>, StoreError> {
        match care {
            Care::Check => self.reading(|sql| doctor::examine(sql, &InPostgres, care, Cure::None)),
            Care::Repair => self.guarded("SELECT pg_advisory_xact_lock($1)", |sql| {
                doctor::examine(sql, &InPostgres, care, Cure::None)
            }),
        }
    }

    fn size(&self) -> Result<Size, StoreError> {
        self.reading(|sql| {
            let mut size = tables::size(sql)?;
            let text = "SELECT CAST(sum(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'fanfold' AND c.relkind = 'r'";
            let row = sql.rows(text, &[])?.into_iter().next();
            let n_bytes = row.map(|mut row| row.opt_int()).transpose()?.flatten().unwrap_or(0);
            size.n_disk_bytes = n_bytes.unsigned_abs();
            Ok(size)
        })
    }
}
