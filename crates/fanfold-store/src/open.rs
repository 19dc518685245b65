//! Opens a store by its address.

use std::path::{Path, PathBuf};

use crate::doctor::CheckMode;
use crate::sqlite::{BusyPolicy, SqliteStore, database_file};
use crate::store::{Store, StoreError};

/// The access that a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading and writing; a missing store is created.
    Write,
    /// The same for a caller with a deadline: while the database is busy or down, an operation fails after about a
    /// second instead of half a minute.
    WritePromptly,
    /// Reading an existing store.
    Read,
}

/// Returns the database file of a SQLite address, `None` for PostgreSQL and memory.
pub fn store_file(address: &str) -> Option<PathBuf> {
    let is_other_kind =
        ["memory:", "postgres://", "postgresql://"].iter().any(|prefix| address.starts_with(prefix));
    let path = path_part(address);
    (!is_other_kind && !path.is_empty() && !path.contains("://")).then(|| database_file(Path::new(path)))
}

fn path_part(address: &str) -> &str {
    let path = address.strip_prefix("sqlite:").unwrap_or(address);
    path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path)
}

/// Opens a store: a file, a folder containing `sessions.db`, `sqlite:FILE`, `postgres://USER@HOST/DATABASE` or
/// `memory:`.
pub fn open(address: &str, mode: OpenMode) -> Result<Box<dyn Store>, StoreError> {
    if address == "memory:" {
        return Ok(Box::new(SqliteStore::in_memory()));
    }
    if address.starts_with("postgres://") || address.starts_with("postgresql://") {
        return open_postgres(address, mode);
    }
    let path = path_part(address);
    let has_unknown_scheme = path.contains("://");
    if path.is_empty() || has_unknown_scheme {
        return Err(StoreError::InvalidAddress(format!("{address:?}")));
    }
    Ok(match mode {
        OpenMode::Write => Box::new(SqliteStore::open(Path::new(path))?),
        OpenMode::WritePromptly => Box::new(SqliteStore::open_with(Path::new(path), BusyPolicy::prompt())?),
        OpenMode::Read => Box::new(SqliteStore::open_read_only(Path::new(path))?),
    })
}

/// Opens an existing store to [`check`](Store::check) it: a damaged SQLite file, too.
pub fn open_to_check(address: &str, mode: CheckMode) -> Result<Box<dyn Store>, StoreError> {
    if let Some(path) = store_file(address) {
        return Ok(Box::new(SqliteStore::to_check(&path, mode)));
    }
    let open_mode = match mode {
        CheckMode::Report => OpenMode::Read,
        CheckMode::Repair => OpenMode::Write,
    };
    open(address, open_mode)
}

#[cfg(feature = "postgres")]
fn open_postgres(address: &str, mode: OpenMode) -> Result<Box<dyn Store>, StoreError> {
    Ok(Box::new(crate::postgres::PostgresStore::open(address, mode)?))
}

#[cfg(not(feature = "postgres"))]
fn open_postgres(_address: &str, _mode: OpenMode) -> Result<Box<dyn Store>, StoreError> {
    Err(StoreError::InvalidAddress(
        "a PostgreSQL database, which this build of fanfold does not support,".into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_file_is_known_for_sqlite_addresses_only() {
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
