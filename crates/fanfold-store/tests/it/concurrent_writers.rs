//! Many writers on one store: no batch is lost or written twice, and no writer sees an error.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_store::{LockOutcome, Millis, SqliteStore, Store};

use crate::shorthand::*;
use crate::writer_process::{OWN_SESSIONS_ONLY, StoreState, WriterProcess, findings_text, store_state};

/// Runs threads that each open a store and write to their own session and to a shared one until the time is over.
/// Returns the number of batches.
fn write_concurrently(n_threads: usize, time: Duration, open: impl Fn() -> Arc<dyn Store> + Sync) -> u64 {
    write(&*open(), vec![create("shared")]);
    let n_all: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads)
            .map(|thread| {
                let open = &open;
                scope.spawn(move || {
                    let store = open();
                    let name = format!("own{thread}");
                    write(&*store, vec![create(&name)]);
                    let start = Instant::now();
                    let mut n = 0;
                    while start.elapsed() < time {
                        let word = format!("t{thread}n{n}");
                        write(&*store, vec![append(&name, &[&word]), append("shared", &[&word])]);
                        n += 1;
                    }
                    n
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let store = open();
    let shared = contents(&*store, "shared");
    let words: BTreeSet<&str> = shared.split(' ').collect();
    assert_eq!(shared.split(' ').count() as u64, n_all, "every batch is stored once");
    assert_eq!(words.len() as u64, n_all);
    for thread in 0..n_threads {
        let own = contents(&*store, &format!("own{thread}"));
        let expected: Vec<&str> =
            shared.split(' ').filter(|word| word.starts_with(&format!("t{thread}n"))).collect();
        assert_eq!(own.split(' ').collect::<Vec<_>>(), expected, "in the order of the commits");
    }
    assert_eq!(findings_text(&*store), "");
    n_all
}

fn time(short: Duration) -> Duration {
    if std::env::var_os("FANFOLD_MANY").is_some() { Duration::from_secs(60) } else { short }
}

#[test]
fn thirty_two_writers_on_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    drop(SqliteStore::open(&path).unwrap());
    // Eight of the writers are separate processes.
    let writers: Vec<WriterProcess> = (0..8)
        .map(|_| WriterProcess::start(path.to_str().unwrap(), StoreState::new(), OWN_SESSIONS_ONLY))
        .collect();
    let readers: Vec<_> = writers
        .into_iter()
        .map(|mut writer| {
            let pid = writer.child.id().to_string();
            let reader = std::thread::spawn(move || {
                while let Some(failure) = writer.read() {
                    assert_eq!(failure, None, "the writer sees no error");
                }
                writer.child.wait().unwrap();
                writer.n_acknowledged
            });
            (pid, reader)
        })
        .collect();
    let n_batches =
        write_concurrently(24, time(Duration::from_secs(3)), || Arc::new(SqliteStore::open(&path).unwrap()));
    let mut n_processes = 0;
    for (pid, reader) in readers {
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        n_processes += u64::from(reader.join().unwrap());
    }
    eprintln!("{n_batches} batches of 24 threads, {n_processes} batches of 8 processes");
    assert!(n_processes > 0);
}

#[test]
fn eight_writers_on_one_store_in_memory() {
    let store = Arc::new(SqliteStore::in_memory());
    let n_batches = write_concurrently(8, time(Duration::from_secs(1)), || store.clone());
    eprintln!("{n_batches} batches of 8 threads");
}

#[test]
fn thirty_two_writers_on_one_server() {
    let Some(database) = crate::cluster::database() else { return };
    let n_batches = write_concurrently(32, time(Duration::from_secs(2)).min(Duration::from_secs(20)), || {
        crate::cluster::open(&database).into()
    });
    eprintln!("{n_batches} batches of 32 threads");
}

#[test]
fn expired_lock_is_taken_over_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    {
        let dead = SqliteStore::open(&path).unwrap();
        write(&dead, vec![create("a")]);
        assert!(matches!(dead.lock(&id("a"), "dead", 1_000, Millis(0)).unwrap(), LockOutcome::Acquired(_)));
    }
    let stores: Vec<SqliteStore> = (0..6).map(|_| SqliteStore::open(&path).unwrap()).collect();
    let take = |now| {
        std::thread::scope(|scope| {
            let takers: Vec<_> = stores
                .iter()
                .enumerate()
                .map(|(i, store)| {
                    scope.spawn(move || store.lock(&id("a"), &format!("h{i}"), 1_000, Millis(now)).unwrap())
                })
                .collect();
            takers.into_iter().map(|taker| taker.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let is_acquired = |outcome: &LockOutcome| matches!(outcome, LockOutcome::Acquired(_));
    assert!(!take(999).iter().any(is_acquired), "the lease has not expired");
    assert_eq!(
        take(1_000).iter().filter(|outcome| is_acquired(outcome)).count(),
        1,
        "one process takes it over"
    );
    assert_eq!(store_state(&stores[0]).len(), 1);
}
