//! A store by its address.

use std::path::{Path, PathBuf};

use crate::in_memory::MemoryStore;
use crate::sqlite::{SqliteStore, database_file};
use crate::store::{Store, StoreError};

/// What is to be done with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading and writing; a store that is not there is made.
    Write,
    /// Reading one that is there.
    Read,
}

/// The file of a store that is in one; none where it is on a server or in memory.
pub fn store_file(address: &str) -> Option<PathBuf> {
    let is_elsewhere =
        ["memory:", "postgres://", "postgresql://"].iter().any(|kind| address.starts_with(kind));
    let path = path_part(address);
    (!is_elsewhere && !path.is_empty() && !path.contains("://")).then(|| database_file(Path::new(path)))
}

fn path_part(address: &str) -> &str {
    let path = address.strip_prefix("sqlite:").unwrap_or(address);
    path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// Opens a store: a file, a folder with `sessions.db` in it, `sqlite:FILE`, `postgres://USER@HOST/DATABASE`, or `memory:`.
pub fn open(address: &str, purpose: OpenMode) -> Result<Box<dyn Store>, StoreError> {
    if address == "memory:" {
        return Ok(Box::new(MemoryStore::default()));
    }
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        return open_postgres(address, purpose);
    }
    let path = path_part(address);
    let is_other = path.split_once("://").is_some();
    if path.is_empty() || is_other {
        return Err(StoreError::Address(format!("{address:?}")));
    }
    Ok(match purpose {
        OpenMode::Write => Box::new(SqliteStore::open(Path::new(path))?),
        OpenMode::Read => Box::new(SqliteStore::open_read_only(Path::new(path))?),
    })
}

#[cfg(feature = "postgres")]
fn open_postgres(address: &str, purpose: OpenMode) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(crate::postgres::PostgresStore::open(address, purpose)?))
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_address: &str, _purpose: OpenMode) -> Result<Box<dyn Store>, StoreError> {
    Err(StoreError::Address("a PostgreSQL database, which this fanfold was built without,".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_in_a_file_names_it() {
        let file = |address| store_file(address).map(|path| path.display().to_string());
        assert_eq!(file("a/b.db").as_deref(), Some("a/b.db"));
        assert_eq!(file("sqlite:///a/b.db").as_deref(), Some("/a/b.db"));
        for elsewhere in ["memory:", "postgres://me@there/db", "postgresql://there/db", "http://x", ""] {
            assert_eq!(file(elsewhere), None, "{elsewhere}");
        }
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(store_file(&folder.path().display().to_string()), Some(folder.path().join("sessions.db")));
    }
}
