//! Truncated and overwritten write-ahead logs.
//!
//! A batch is acknowledged after its frames in the log are synced, so a power loss can only damage frames after the
//! last acknowledged batch, and no acknowledged batch is lost. A disk that ignores syncs may lose more. The store
//! then still opens, in the state after the last batch whose frames are intact. Frames that a checkpoint has copied
//! to the file are not lost if the log is intact up to them.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fanfold_store::SqliteStore;

use crate::crash::{check_state, run_and_kill};
use crate::model::n_cases;
use crate::writer_process::{PLAIN, StoreState, WriterProcess, store_state};

/// The write-ahead log of a file, parsed by SQLite's documented format.
struct Log {
    bytes: Vec<u8>,
    /// The size of a frame.
    frame: usize,
    /// The end offset of each transaction.
    ends: Vec<usize>,
    /// The end offset of the frames that a checkpoint may have copied to the file.
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
        // Frames from before the last reset of the log have other salts.
        while at + frame <= bytes.len() && &bytes[at + 8..at + 16] == salts {
            at += frame;
            if number(&bytes, at - frame + 4) > 0 {
                ends.push(at);
            }
        }
        // `nBackfillAttempted`: set before a checkpoint writes to the file, after syncing the log up to that frame.
        let n_backfilled = marks.get(128..132).map_or(0, |n| u32::from_ne_bytes(n.try_into().unwrap()));
        Log { frame, ends, backfilled: 32 + n_backfilled as usize * frame, bytes }
    }

    /// Returns the log damaged from an offset on, in one of three random ways.
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

/// Returns the state of a copy of the store with this log.
fn state_with_log(path: &Path, log: &[u8]) -> StoreState {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.db");
    fs::copy(path, &copy).unwrap();
    fs::write(folder.path().join("copy.db-wal"), log).unwrap();
    store_state(&SqliteStore::open(&copy).unwrap())
}

/// Runs a checkpoint after some time, with an open reader that prevents a reset of the log.
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
fn torn_log_restores_a_prefix_of_the_batches() {
    let (mut n_tears, mut n_exact, mut n_lost, mut n_checkpointed) = (0, 0, 0, 0);
    for _ in 0..n_cases(6) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let mut acknowledged = StoreState::new();
        for _ in 0..3 {
            let mut writer = WriterProcess::start(path.to_str().unwrap(), acknowledged, PLAIN);
            let time = Duration::from_micros(fastrand::u64(0..150_000));
            // Start the reader after the first batch, because it would block the creation of the store.
            while writer.n_acknowledged == 0 {
                writer.read().unwrap();
            }
            let others = fastrand::bool().then(|| checkpoint_after(&path, time / 2));
            run_and_kill(&mut writer, time, false);
            let others = others.map(|others| others.join().unwrap());
            let log = Log::read(&path);
            let mut history = writer.history.clone();
            let whole = state_with_log(&path, &log.bytes);
            if whole != writer.acknowledged {
                history.push(whole.clone());
            }
            assert_eq!(history.last(), Some(&whole));
            let end = log.ends.last().copied().unwrap_or(log.backfilled);
            // Damage after the last batch, as a power loss causes: no acknowledged batch is lost.
            if end < log.bytes.len() {
                let at = fastrand::usize(end..log.bytes.len());
                assert_eq!(
                    state_with_log(&path, &log.tear(at)),
                    whole,
                    "damaged after the last batch, at {at}"
                );
                n_tears += 1;
            }
            // Damage earlier in the log, as a disk that ignores syncs causes: the last batches may be lost.
            for _ in 0..3 {
                let from = log.backfilled.max(32);
                if from >= end {
                    break;
                }
                // Half of the damages are near the end, where lost writes are most likely.
                let from =
                    if fastrand::bool() { from.max(end - (end - from).min(20 * log.frame)) } else { from };
                let at = fastrand::usize(from..end);
                let n_lost_here = log.ends.iter().filter(|end| **end > at).count();
                // Indexing makes commits of its own, so the number of lost batches is at most that of lost commits.
                let first = history.len().saturating_sub(1 + n_lost_here);
                let found = state_with_log(&path, &log.tear(at));
                assert!(
                    history[first..].contains(&found),
                    "damaged at {at} of {end}, {n_lost_here} commits lost"
                );
                n_exact += u32::from(found == history[first]);
                n_tears += 1;
                n_lost += n_lost_here;
                n_checkpointed += u32::from(log.backfilled > 32);
            }
            drop(others);
            acknowledged = check_state(&SqliteStore::open(&path).unwrap(), &writer);
        }
    }
    eprintln!(
        "{n_tears} damaged logs, {n_lost} commits after the damage; in {n_exact} cases exactly those were lost; \
         {n_checkpointed} cases with an earlier checkpoint"
    );
    assert!(n_lost > 0);
}
