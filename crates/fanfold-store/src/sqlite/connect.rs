//! Creates, opens, configures and migrates SQLite files.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error;
use crate::schema;
use crate::store::StoreError;

/// The name of the database file in a store's folder.
const FILE_NAME: &str = "sessions.db";

/// Identifies a fanfold store in the SQLite header, also for `file`: "fanf".
const APPLICATION_ID: u32 = 0x6661_6e66;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// For reading and writing.
    Write,
    /// For reading, concurrently with writers.
    Read,
    /// For reading a file in a read-only folder, where no process can be writing to it.
    Immutable,
    /// For reading alone, with the index of the log in memory instead of a file.
    Alone,
    /// For reading and writing a database in memory, which is lost when its only connection is closed.
    Memory,
}

/// The path of a database in memory.
pub(super) const MEMORY: &str = ":memory:";

/// Returns the database file of a path, which may be a folder.
pub(crate) fn database_file(path: &Path) -> PathBuf {
    if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() }
}

/// Creates a missing file and its folder, accessible to the owner only.
pub(super) fn create_file(path: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| {
        let text = format!("cannot create {}: {error}", path.display());
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

/// Determines how to read a file. A leftover log must be read, too, which requires creating a `-shm` file.
pub(super) fn read_access(path: &Path) -> Access {
    let is_folder_writable = path.parent().is_some_and(|folder| {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        folder.metadata().is_ok_and(|folder| !folder.permissions().readonly())
    });
    if has_log(path) || is_folder_writable { Access::Read } else { Access::Immutable }
}

/// True if the newest changes are in a log.
fn has_log(path: &Path) -> bool {
    sibling(path, "-wal").metadata().is_ok_and(|log| log.len() > 0)
}

/// Returns the path with an ending appended to its file name.
pub(super) fn sibling(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Returns the bytes of a file and its log.
pub(super) fn n_disk_bytes(path: &Path) -> u64 {
    let files = [path.to_owned(), sibling(path, "-wal")];
    files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
}

/// Opens a connection for writing, and migrates the file to the newest schema.
pub(super) fn open_writer(path: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(error::convert)?;
    configure(&mut connection, wait).map_err(error::convert)?;
    migrate(&connection)?;
    Ok(connection)
}

/// Opens a connection for writing that locks out all others until it is closed.
pub(super) fn open_exclusive(path: &Path, wait: Duration) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(error::convert)?;
    // Must be set before the file is first read, because then the log is opened in shared mode.
    connection
        .pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))
        .map_err(error::convert)?;
    configure(&mut connection, wait).map_err(error::convert)?;
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT").map_err(error::convert)?;
    Ok(connection)
}

/// Opens a connection for reading. Returns also whether it may stay open: not if it reads without the files that other
/// processes need to see it, because the disk is full or cannot be written.
pub(super) fn open_reader(
    path: &Path,
    access: Access,
    wait: Duration,
) -> Result<(Connection, bool), StoreError> {
    let error = match open_reader_with(path, access, wait) {
        Err(error @ (StoreError::DiskFull | StoreError::Other(_))) if access != Access::Immutable => error,
        opened => return opened.map(|connection| (connection, true)),
    };
    // Without a log, the file is complete. With one, only a reader of the log sees all of it.
    let access = if has_log(path) { Access::Alone } else { Access::Immutable };
    match open_reader_with(path, access, wait) {
        Ok(connection) => Ok((connection, false)),
        Err(_) if access == Access::Alone && path.exists() => Err(unread_log(path, &error)),
        Err(_) => Err(error),
    }
}

/// Explains that a log cannot be read where it is.
fn unread_log(path: &Path, error: &StoreError) -> StoreError {
    let text = error.to_string();
    let text = text.split("\n\nhint:").next().unwrap_or_default();
    let log = sibling(path, "-wal");
    let hint = "copy both files to a folder that you can write to, and use the copy (--store FILE)";
    StoreError::Other(
        format!("{text}; its newest changes in {} cannot be read there\n\nhint: {hint}", log.display())
            .into(),
    )
}

fn open_reader_with(path: &Path, access: Access, wait: Duration) -> Result<Connection, StoreError> {
    let mode = match access {
        Access::Alone => OpenFlags::SQLITE_OPEN_READ_WRITE,
        _ => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let name = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let end = if access == Access::Immutable { "?immutable=1" } else { "" };
    let mut connection =
        Connection::open_with_flags(format!("file:{name}{end}"), flags).map_err(error::convert)?;
    if access == Access::Alone {
        read_alone(&connection).map_err(error::convert)?;
    }
    configure(&mut connection, wait).map_err(error::convert)?;
    let found = version(&connection)?;
    match file_owner(&connection)? {
        FileOwner::Empty => return Err(StoreError::NoStore),
        FileOwner::Foreign => return Err(StoreError::ForeignDatabase),
        FileOwner::Fanfold => {}
    }
    if !schema::pending_steps(schema::SQLITE, found)?.is_empty() {
        return Err(StoreError::TooOld { found, known: schema::newest_version(schema::SQLITE) });
    }
    Ok(connection)
}

/// Lets a connection read the log without other files, and leave it as it is when it is closed.
fn read_alone(connection: &Connection) -> rusqlite::Result<()> {
    // Must be set before the file is first read, because then the log is opened in shared mode.
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update(None, "query_only", true)
}

fn configure(connection: &mut Connection, wait: Duration) -> rusqlite::Result<()> {
    let mut since = Instant::now();
    // Sleep for short times: frequent attempts get the lock even while another process writes continuously.
    connection.busy_handler(Some(move |n_waits| {
        if n_waits == 0 {
            since = Instant::now();
        }
        std::thread::sleep(Duration::from_micros(fastrand::u64(200..2000)));
        since.elapsed() < wait
    }))?;
    connection.set_prepared_statement_cache_capacity(64);
    // Sync each commit before it returns, so that it survives a power loss.
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Checkpoint after about 8 MB instead of 4, so that pages changed by many batches are written less often.
    connection.pragma_update_and_check(None, "wal_autocheckpoint", 2_000, |_| Ok(()))?;
    // Never prepare a statement again for other parameter values: no query plan depends on them.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "cache_size", -16_384)
}

fn version(connection: &Connection) -> Result<u32, StoreError> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(error::convert)
}

/// The program that a file belongs to.
enum FileOwner {
    /// The file has no tables.
    Empty,
    /// The file is a fanfold store.
    Fanfold,
    /// The file has tables of another program.
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
        return Err(StoreError::ForeignDatabase);
    }
    if schema::pending_steps(schema::SQLITE, found)?.is_empty() {
        return Ok(());
    }
    // Write-ahead logging lets readers run concurrently with a writer. The mode persists in the file.
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).map_err(error::convert)?;
    super::transaction(connection, "BEGIN IMMEDIATE", &mut |connection: &Connection| {
        // Another process may have migrated the file in the meantime.
        for step in schema::pending_steps(schema::SQLITE, version(connection)?)? {
            connection.execute_batch(step).map_err(error::convert)?;
            let version = version(connection)? + 1;
            connection.pragma_update(None, "user_version", version).map_err(error::convert)?;
        }
        connection.pragma_update(None, "application_id", APPLICATION_ID).map_err(error::convert)
    })
}
