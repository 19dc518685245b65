//! Opening a file, and what a connection is set to.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error;
use crate::schema;
use crate::store::StoreError;

/// The file of a store whose folder is named.
const FILE_NAME: &str = "sessions.db";

/// Marks a file as ours, for `file` and for whoever opens it: "fanf".
const APPLICATION_ID: u32 = 0x6661_6e66;

/// What may be done with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Everything.
    Write,
    /// Reading, beside others who write.
    Read,
    /// Reading a file that nobody can be writing to, in a folder where nothing can be made.
    Immutable,
}

/// The file that a path means.
pub(crate) fn database_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

/// Makes the file and its folder, if they are not there, for nobody else's eyes.
pub(super) fn create_file(path: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| {
        let text = format!("{} can't be made: {error}", path.display());
        StoreError::Other(std::io::Error::new(error.kind(), text).into())
    };
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    let mut folders = fs::DirBuilder::new();
    folders.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        options.mode(0o600);
        folders.mode(0o700);
    }
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        folders.create(folder).map_err(failed)?;
    }
    options.open(path).map(drop).map_err(failed)
}

/// How a file can be read: a log that is left beside it must be read too, and that takes a file for the readers' marks.
pub(super) fn read_access(path: &Path) -> Access {
    let has_log = sibling(path, "-wal").metadata().is_ok_and(|log| log.len() > 0);
    let can_write_there = path.parent().is_some_and(|folder| {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        folder.metadata().is_ok_and(|folder| !folder.permissions().readonly())
    });
    if has_log || can_write_there { Access::Read } else { Access::Immutable }
}

/// The file of that ending beside a file.
pub(super) fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// The bytes of a file and its log.
pub(super) fn n_disk_bytes(path: &Path) -> u64 {
    let files = [path.to_owned(), sibling(path, "-wal")];
    files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// The connection that writes. It brings an older file up to date.
pub(super) fn open_writer(path: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(error::convert)?;
    configure(&mut connection, wait).map_err(error::convert)?;
    migrate(&connection)?;
    Ok(connection)
}

/// A connection that writes and lets nobody else in until it is closed.
pub(super) fn open_exclusive(path: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(error::convert)?;
    // Said before the file is read, or the log would be shared.
    connection
        .pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))
        .map_err(error::convert)?;
    configure(&mut connection, wait).map_err(error::convert)?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT").map_err(error::convert)?;
    Ok(connection)
}

/// A connection that reads.
pub(super) fn open_reader(path: &Path, access: Access, wait: Duration) -> Result<Connection, StoreError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let name = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let end = if access == Access::Immutable { "?immutable=1" } else { "" };
    let mut connection =
        Connection::open_with_flags(format!("file:{name}{end}"), flags).map_err(error::convert)?;
    configure(&mut connection, wait).map_err(error::convert)?;
    let found = version(&connection)?;
    match file_owner(&connection)? {
        FileOwner::Empty => return Err(StoreError::NoStore),
        FileOwner::Foreign => return Err(StoreError::Foreign),
        FileOwner::Fanfold => {}
    }
    if !schema::pending_steps(schema::SQLITE, found)?.is_empty() {
        return Err(StoreError::TooOld { found, known: schema::newest_version(schema::SQLITE) });
    }
    Ok(connection)
}

fn configure(connection: &mut Connection, wait: Duration) -> rusqlite::Result<()> {
    let mut since = Instant::now();
    // Short naps: whoever asks often gets its turn even from one who writes without a pause.
    connection.busy_handler(Some(move |n_waits| {
        if n_waits == 0 {
            since = Instant::now();
        }
        std::thread::sleep(Duration::from_micros(fastrand::u64(200..2000)));
        since.elapsed() < wait
    }))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Each commit is synced before it returns: it survives a loss of power, not only of the process.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // The log is put into the file after some 8 MB instead of 4: pages that many batches touch are written less often.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 2_000, |_| Ok(()))?;
    // A statement is prepared once and not anew for each value that it is given: no plan of ours depends on them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -16_384)
}

fn version(connection: &Connection) -> Result<u32, StoreError> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(error::convert)
}

/// Whose a file is.
enum FileOwner {
    /// Nothing is in it.
    Empty,
    /// It is a store.
    Fanfold,
    /// It has other tables.
    Foreign,
}

fn file_owner(connection: &Connection) -> Result<FileOwner, StoreError> {
    let count = "SELECT count(*) FROM sqlite_schema";
    let n_tables: u32 = connection.query_row(count, [], |row| row.get(0)).map_err(error::convert)?;
    let application: u32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).map_err(error::convert)?;
    Ok(match n_tables {
        0 => FileOwner::Empty,
        _ if application == APPLICATION_ID => FileOwner::Fanfold,
        _ => FileOwner::Foreign,
    })
}

fn migrate(connection: &Connection) -> Result<(), StoreError> {
    let found = version(connection)?;
    if matches!(file_owner(connection)?, FileOwner::Foreign) {
        return Err(StoreError::Foreign);
    }
    if schema::pending_steps(schema::SQLITE, found)?.is_empty() {
        return Ok(());
    }
    // A log lets others read while one writes. It stays with the file.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).map_err(error::convert)?;
    super::transaction(connection, "BEGIN IMMEDIATE", &mut |connection: &Connection| {
        // Another process may have been quicker.
        for step in schema::pending_steps(schema::SQLITE, version(connection)?)? {
            connection.execute_batch(step).map_err(error::convert)?;
            let version = version(connection)? + 1;
            connection.pragma_update(None, "user_version", version).map_err(error::convert)?;
        }
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(error::convert)
    })
}
