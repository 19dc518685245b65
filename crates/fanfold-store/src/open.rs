//! A store by its address.

use std::path::Path;

use crate::memory::MemoryStore;
use crate::sqlite::SqliteStore;
use crate::store::{Store, StoreError};

/// What is to be done with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reading and writing; a store that is not there is made.
    Write,
    /// Reading one that is there.
    Read,
}

/// Opens a store: a file, a folder with `sessions.db` in it, `sqlite:FILE`, `postgres://USER@HOST/DATABASE`, or `memory:`.
pub fn open(address: &str, purpose: Purpose) -> Result<Box<dyn Store>, StoreError> {
    if address == "memory:" {
        return Ok(Box::new(MemoryStore::default()));
    }
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        return open_postgres(address, purpose);
    }
    let path = address.strip_prefix("sqlite:").unwrap_or(address);
    let path = path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    let is_other = path.split_once("://").is_some();
    if path.is_empty() || is_other {
        return Err(StoreError::Address(format!("{address:?}")));
    }
    Ok(match purpose {
        Purpose::Write => Box::new(SqliteStore::open(Path::new(path))?),
        Purpose::Read => Box::new(SqliteStore::open_read_only(Path::new(path))?),
    })
}

#[cfg(feature = "postgres")]
fn open_postgres(address: &str, purpose: Purpose) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(crate::postgres::PostgresStore::open(address, purpose)?))
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_address: &str, _purpose: Purpose) -> Result<Box<dyn Store>, StoreError> {
    Err(StoreError::Address("a PostgreSQL database, which this fanfold was built without,".into()))
}
