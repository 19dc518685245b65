//! A log whose end was torn off or overwritten.
//!
//! A batch is acknowledged after its frames in the log are synced, so a loss of power can tear only what came after the
//! last acknowledged one: nothing acknowledged is lost. A disk that lies about syncing may lose more. Then the store still
//! opens, and stands as it did after one of the last batches: the last one whose frames are whole. Of what was put into
//! the file before (a checkpoint), nothing is lost, as long as the log is whole up to there.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fanfold_store::SqliteStore;

use crate::crash::{check_standing, run_and_kill};
use crate::model::n_cases;
use crate::scribe::{PLAIN, Scribe, Standing, stands};

/// The log of a file, by the format that SQLite documents.
struct Log {
    bytes: Vec<u8>,
    frame: usize,
    /// Where each batch of the log ends.
    ends: Vec<usize>,
    /// Up to where it was put into the file.
    backfilled: usize,
}

impl Log {
    fn read(path: &Path) -> Log {
        let bytes = fs::read(path.with_extension("db-wal")).unwrap_or_default();
        let marks = fs::read(path.with_extension("db-shm")).unwrap_or_default();
        let number =
            |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        if bytes.len() < 32 {
            return Log { bytes, frame: 1, ends: Vec::new(), backfilled: 0 };
        }
        let frame = 24 + number(&bytes, 8);
        let salts = &bytes[16..24];
        let mut ends = Vec::new();
        let mut at = 32;
        // Frames of an older round have other salts.
        while at + frame <= bytes.len() && &bytes[at + 8..at + 16] == salts {
            at += frame;
            if number(&bytes, at - frame + 4) > 0 {
                ends.push(at);
            }
        }
        // The mark that is set before a checkpoint begins to write: it syncs the log up to there first.
        let n_backfilled = marks.get(128..132).map_or(0, |n| u32::from_ne_bytes(n.try_into().unwrap()));
        Log { frame, ends, backfilled: 32 + n_backfilled as usize * frame, bytes }
    }

    /// Tears it at an offset, in one of three ways.
    fn tear(&self, at: usize) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        match fastrand::u8(..3) {
            0 => bytes.truncate(at),
            1 => bytes[at..].iter_mut().for_each(|byte| *byte = byte.wrapping_add(fastrand::u8(1..))),
            _ => {
                let end = (at + 512).min(bytes.len());
                bytes[at..end].iter_mut().for_each(|byte| *byte = !*byte);
            }
        }
        bytes
    }
}

/// How a copy of the store with this log stands.
fn stands_with(path: &Path, log: &[u8]) -> Standing {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    fs::copy(path, &copy).unwrap();
    fs::write(folder.path().join("copy.db-wal"), log).unwrap();
    stands(&SqliteStore::open(&copy).unwrap())
}

/// Puts what is in the log into the file after some time. Somebody who reads keeps the log from being begun anew.
fn checkpoint_after(path: &Path, time: Duration) -> std::thread::JoinHandle<Option<rusqlite::Connection>> {
    let path = path.to_owned();
    std::thread::spawn(move || {
        std::thread::sleep(time);
        let reader = rusqlite::Connection::open(&path).ok()?;
        reader.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, u32>(0)).ok()?;
        reader.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").ok()?;
        let other = rusqlite::Connection::open(&path).ok()?;
        other.execute_batch("PRAGMA wal_checkpoint(PASSIVE)").ok()?;
        Some(reader)
    })
}

#[test]
fn a_torn_log_is_a_prefix() {
    let (mut n_tears, mut n_whole, mut n_lost, mut n_checkpointed) = (0, 0, 0, 0);
    for _ in 0..n_cases(6) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut safe = Standing::new();
        for _ in 0..3 {
            let mut scribe = Scribe::start(path.to_str().unwrap(), safe, PLAIN);
            let time = Duration::from_micros(fastrand::u64(0..150_000));
            // Who reads comes when there is something: before, it would keep the store from being made.
            while scribe.n_done == 0 {
                scribe.read().unwrap();
            }
            let others = fastrand::bool().then(|| checkpoint_after(&path, time / 2));
            run_and_kill(&mut scribe, time, false);
            let others = others.map(|others| others.join().unwrap());
            let log = Log::read(&path);
            let mut history = scribe.history.clone();
            let whole = stands_with(&path, &log.bytes);
            if whole != scribe.safe {
                history.push(whole.clone());
            }
            assert_eq!(history.last(), Some(&whole));
            let end = log.ends.last().copied().unwrap_or(log.backfilled);
            // What was being written when the power went: nothing acknowledged is lost.
            if end < log.bytes.len() {
                let at = fastrand::usize(end..log.bytes.len());
                assert_eq!(stands_with(&path, &log.tear(at)), whole, "torn behind the last batch, at {at}");
                n_tears += 1;
            }
            // A disk that lied: the last batches may go, one by one from the end.
            for _ in 0..3 {
                let from = log.backfilled.max(32);
                if from >= end {
                    break;
                }
                // Half of them near the end, where a disk would lie first.
                let from =
                    if fastrand::bool() { from.max(end - (end - from).min(20 * log.frame)) } else { from };
                let at = fastrand::usize(from..end);
                let n_gone = log.ends.iter().filter(|end| **end > at).count();
                // The index is brought up to date by commits of its own, so no more batches are gone than commits.
                let first = history.len().saturating_sub(1 + n_gone);
                let found = stands_with(&path, &log.tear(at));
                assert!(history[first..].contains(&found), "torn at {at} of {end}, {n_gone} commits gone");
                n_whole += u32::from(found == history[first]);
                n_tears += 1;
                n_lost += n_gone;
                n_checkpointed += u32::from(log.backfilled > 32);
            }
            drop(others);
            safe = check_standing(&SqliteStore::open(&path).unwrap(), &scribe);
        }
    }
    eprintln!(
        "{n_tears} tears, {n_lost} commits behind them; {n_whole} times exactly those were gone; {n_checkpointed} times with a \
         checkpoint before"
    );
    assert!(n_lost > 0);
}
