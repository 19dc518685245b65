//! Writes a new file with everything that can be read in a damaged one.
//!
//! The rows are read from a copy of the damaged file, page by page, so a lost page costs the rows on it and nothing
//! else: neither the header nor the schema nor the interior pages of trees are needed. Lost lanes and sessions are
//! restored from their indexes. The old file is saved in the same folder as `.broken`.

mod page_file; //     pages, trees and rows of a file
mod record; //        the values of a row
mod tables; //        the tables to save
mod copy; //          rows to a new store
mod lost_sessions; // sessions without their rows

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::{connect, error};
use crate::database::sql::Cell;
use crate::store::StoreError;
use page_file::PageFile;

type Result<T> = std::result::Result<T, StoreError>;

/// The result of writing a new file.
pub(super) struct SalvageReport {
    /// The copy of the damaged file.
    pub(super) backup: PathBuf,
    /// A description of each loss.
    pub(super) losses: Vec<String>,
}

/// Replaces a damaged file by a new one with its readable rows. Fails with [`StoreError::Busy`] if another process has
/// it open.
pub(super) fn salvage(path: &Path, wait: Duration) -> Result<SalvageReport> {
    let fresh = connect::sibling(path, ".mending");
    let old = connect::sibling(path, ".mending-old");
    let result = replace(path, &fresh, &old, wait);
    remove_database(&fresh);
    remove_database(&old);
    result
}

/// Returns the names and definitions of the tables and indexes of a file that SQLite may be unable to open.
pub(super) fn readable_schema(path: &Path) -> Result<BTreeSet<(String, String)>> {
    let pages = open_pages(path)?;
    let mut schema = BTreeSet::new();
    pages.read_tree(1, &mut pages.empty_set(), &mut |row| {
        if let [_, Cell::Text(name), _, _, Cell::Text(definition)] = row.cells.as_slice() {
            schema.insert((name.clone(), definition.clone()));
        }
    });
    Ok(schema)
}

fn replace(path: &Path, fresh: &Path, old: &Path, wait: Duration) -> Result<SalvageReport> {
    remove_database(fresh);
    connect::create_file(fresh)?;
    let writer = connect::open_writer(fresh, wait)?;
    let backup = unused_backup_path(path);
    connect::create_file(&backup)?;
    let result = match copy_exclusively(path, &backup, wait) {
        Ok(mut exclusive) => open_pages(&backup).and_then(|pages| {
            let losses = copy::copy_rows(pages, &writer)?;
            // In one transaction, so any other process sees either the old or the new file.
            copy_pages(&writer, &mut exclusive)?;
            Ok(losses)
        }),
        Err(error @ (StoreError::Busy { .. } | StoreError::DiskFull)) => Err(error),
        // SQLite reads neither its header nor its schema, so no other process can use the file either.
        Err(_) => copy_files(path, &backup).and_then(|()| {
            let losses = copy::copy_rows(readable_pages(&backup, fresh, old)?, &writer)?;
            writer.close().map_err(|(_, error)| error::convert(error))?;
            ["-wal", "-shm"].into_iter().for_each(|ending| remove_file(path, ending));
            std::fs::rename(fresh, path).map_err(|error| io_error("replace", path, &error))?;
            Ok(losses)
        }),
    };
    match result {
        Ok(losses) => Ok(SalvageReport { backup, losses }),
        Err(error) => {
            remove_database(&backup);
            Err(error)
        }
    }
}

/// Locks a file and copies it with its log.
fn copy_exclusively(path: &Path, copy: &Path, wait: Duration) -> Result<Connection> {
    let exclusive = connect::open_exclusive(path, wait)?;
    copy_pages(&exclusive, &mut Connection::open(copy).map_err(error::convert)?)?;
    Ok(exclusive)
}

/// Opens the pages of a copy that SQLite may be unable to open. Pages in its log are newer than those in the file.
fn readable_pages(copy: &Path, fresh: &Path, old: &Path) -> Result<PageFile> {
    if !connect::sibling(copy, "-wal").exists() {
        return open_pages(copy);
    }
    remove_database(old);
    copy_files(copy, old)?;
    write_header(old, fresh).map_err(|error| io_error("write", old, &error))?;
    let merge = || -> rusqlite::Result<()> {
        let connection = Connection::open(old)?;
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
    };
    // Without its log, the file has at least what was written before.
    let _ = merge();
    open_pages(old)
}

/// Overwrites the header of a file with that of another store, so that SQLite opens the file and reads its log.
fn write_header(path: &Path, fresh: &Path) -> std::io::Result<()> {
    use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
    const SIZE: usize = 100;
    /// The list of free pages, which is kept.
    const FREE_PAGES: std::ops::Range<usize> = 32..40;
    let mut header = [0; SIZE];
    std::fs::File::open(fresh)?.read_exact(&mut header)?;
    let n_pages = path.metadata()?.len().div_ceil(page_file::PAGE_SIZE as u64);
    header[28..32].copy_from_slice(&u32::try_from(n_pages).unwrap_or(u32::MAX).to_be_bytes());
    let mut file = std::fs::OpenOptions::new().read(true).write(true).open(path)?;
    file.write_all(&header[..FREE_PAGES.start])?;
    file.seek(SeekFrom::Start(FREE_PAGES.end as u64))?;
    file.write_all(&header[FREE_PAGES.end..])
}

fn open_pages(path: &Path) -> Result<PageFile> {
    PageFile::open(path).map_err(|error| io_error("read", path, &error))
}

/// Copies a file and its log.
fn copy_files(from: &Path, to: &Path) -> Result<()> {
    let copy = |ending| {
        let from = connect::sibling(from, ending);
        std::fs::copy(&from, connect::sibling(to, ending)).map_err(|error| io_error("copy", &from, &error))
    };
    copy("")?;
    let has_log = connect::sibling(from, "-wal").metadata().is_ok_and(|log| log.len() > 0);
    if has_log { copy("-wal").map(drop) } else { Ok(()) }
}

fn io_error(verb: &str, path: &Path, error: &std::io::Error) -> StoreError {
    let text = format!("cannot {verb} {}: {error}", path.display());
    StoreError::Other(std::io::Error::new(error.kind(), text).into())
}

/// Copies all pages of a file, regardless of their contents.
fn copy_pages(from: &Connection, to: &mut Connection) -> Result<()> {
    let backup = Backup::new(from, to).map_err(error::convert)?;
    match backup.step(-1).map_err(error::convert)? {
        StepResult::Done => Ok(()),
        _ => Err(StoreError::Busy { tries: 1 }),
    }
}

/// Returns an unused path for the backup in the folder of the file.
fn unused_backup_path(path: &Path) -> PathBuf {
    let first = connect::sibling(path, ".broken");
    let others = (2..).map(|n: u32| connect::sibling(path, &format!(".broken-{n}")));
    std::iter::once(first).chain(others).find(|name| !name.exists()).unwrap_or_default()
}

/// Removes a database file with its log.
fn remove_database(path: &Path) {
    ["", "-wal", "-shm"].into_iter().for_each(|ending| remove_file(path, ending));
}

fn remove_file(path: &Path, ending: &str) {
    // It may not be there.
    let _ = std::fs::remove_file(connect::sibling(path, ending));
}
