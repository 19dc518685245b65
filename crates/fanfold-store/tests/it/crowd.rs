//! Many writers on one store: no turn is lost or doubled, and nobody sees an error.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use fanfold_store::{LockOutcome, Millis, SqliteStore, Store};

use crate::scribe::{BESIDE_OTHERS, Scribe, Standing, faults, stands};
use crate::words::*;

/// Threads with stores of their own, until the time is over; each writes to its own session and to one that all share.
fn crowd(n_threads: usize, time: Duration, open: impl Fn() -> Box<dyn Store> + Sync) -> u64 {
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
    let shared = said(&*store, "shared");
    let words: BTreeSet<&str> = shared.split(' ').collect();
    assert_eq!(shared.split(' ').count() as u64, n_all, "every turn is there once");
    assert_eq!(words.len() as u64, n_all);
    for thread in 0..n_threads {
        let own = said(&*store, &format!("own{thread}"));
        let due: Vec<&str> =
            shared.split(' ').filter(|word| word.starts_with(&format!("t{thread}n"))).collect();
        assert_eq!(own.split(' ').collect::<Vec<_>>(), due, "in the order it was said");
    }
    assert_eq!(faults(&*store), "");
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
    // Eight of them are processes of their own.
    let scribes: Vec<Scribe> =
        (0..8).map(|_| Scribe::start(path.to_str().unwrap(), Standing::new(), BESIDE_OTHERS)).collect();
    let readers: Vec<_> = scribes
        .into_iter()
        .map(|mut scribe| {
            let pid = scribe.child.id().to_string();
            let reader = std::thread::spawn(move || {
                while let Some(failure) = scribe.read() {
                    assert_eq!(failure, None, "no error is shown");
                }
                scribe.child.wait().unwrap();
                scribe.n_done
            });
            (pid, reader)
        })
        .collect();
    let n_turns = crowd(24, time(Duration::from_secs(3)), || Box::new(SqliteStore::open(&path).unwrap()));
    let mut n_processes = 0;
    for (pid, reader) in readers {
        assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
        n_processes += u64::from(reader.join().unwrap());
    }
    eprintln!("{n_turns} turns of 24 threads, {n_processes} batches of 8 processes");
    assert!(n_processes > 0);
}

#[test]
fn thirty_two_writers_on_one_server() {
    let Some(database) = crate::cluster::database() else { return };
    let n_turns = crowd(32, time(Duration::from_secs(2)).min(Duration::from_secs(20)), || {
        crate::cluster::open(&database)
    });
    eprintln!("{n_turns} turns of 32 threads");
}

#[test]
fn the_lock_of_a_dead_holder_is_taken_over() {
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
    let is_ours = |held: &LockOutcome| matches!(held, LockOutcome::Acquired(_));
    assert!(!take(999).iter().any(is_ours), "it is not over");
    assert_eq!(take(1_000).iter().filter(|held| is_ours(held)).count(), 1, "one of them takes it over");
    assert_eq!(stands(&stores[0]).len(), 1);
}
