//! What was acknowledged is there after a kill, on a full disk, behind a torn log, and when a server dies.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fanfold_store::{SqliteStore, Store};

use crate::cluster::{self, Cluster};
use crate::model::n_cases;
use crate::scribe::{PLAIN, Scribe, Standing, after, stands};

/// Lets a scribe write for some time, then kills it. An early kill may come before it has opened the store.
pub(crate) fn run_and_kill(scribe: &mut Scribe, time: Duration, is_early: bool) {
    while !is_early && scribe.n_done == 0 {
        scribe.read().unwrap();
    }
    let pid = scribe.child.id().to_string();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(time);
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    });
    scribe.finish();
    killer.join().unwrap();
}

/// The store stands as the last acknowledgement says, or as the one batch behind it does.
pub(crate) fn check_standing(store: &dyn Store, scribe: &Scribe) -> Standing {
    let found = stands(store);
    let planned = scribe.plan.as_ref().map(|plan| after(&scribe.safe, plan));
    if found != scribe.safe {
        assert_eq!(
            Some(&found),
            planned.as_ref(),
            "it stands neither as acknowledged nor as planned behind that"
        );
    }
    found
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill() {
    let n_kills = if std::env::var_os("FANFOLD_MANY").is_some() { 600 } else { 60 };
    let (mut n_done, mut n_unanswered) = (0, 0);
    let mut folder = tempfile::tempdir().unwrap();
    let mut safe = Standing::new();
    for kill in 0..n_kills {
        if kill % 12 == 0 {
            folder = tempfile::tempdir().unwrap();
            safe = Standing::new();
        }
        let path = folder.path().join("x.db");
        let mut scribe = Scribe::start(path.to_str().unwrap(), safe, PLAIN);
        run_and_kill(&mut scribe, Duration::from_micros(fastrand::u64(0..60_000)), kill % 6 == 0);
        safe = check_standing(&SqliteStore::open(&path).unwrap(), &scribe);
        n_done += scribe.n_done;
        n_unanswered += u32::from(safe != scribe.safe);
    }
    eprintln!("{n_kills} kills, {n_done} batches acknowledged, {n_unanswered} written and not acknowledged");
    assert!(n_done > n_kills, "{n_done} batches in {n_kills} runs");
}

#[test]
fn a_full_disk_loses_nothing_and_goes_on() {
    // Files may grow to about 800 kB: the log fails first, or the file when the log is put into it.
    let limit = "trap '' XFSZ; ulimit -f 800; exec \"$@\"";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut safe = Standing::new();
    for _ in 0..n_cases(2) {
        let mut scribe = Scribe::start(path.to_str().unwrap(), safe, limit);
        let mut n_failed = 0;
        while n_failed < 5 {
            if let Some(failure) = scribe.read().expect("it goes on after a failure") {
                assert!(failure.ends_with(" Full"), "{failure}");
                n_failed += 1;
                let stdin = scribe.child.stdin.as_mut().unwrap();
                std::io::Write::write_all(stdin, b"\n").unwrap();
            }
        }
        scribe.child.kill().unwrap();
        scribe.finish();
        // Without the limit there is room again.
        let store = SqliteStore::open(&path).unwrap();
        safe = check_standing(&store, &scribe);
        crate::words::write(
            &store,
            vec![crate::words::create("more"), crate::words::append("more", &["room"])],
        );
        crate::words::write(&store, vec![fanfold_store::Op::Delete(crate::words::id("more"))]);
        store.collect_garbage().unwrap();
    }
    assert!(!safe.is_empty());
}

#[test]
fn a_small_disk_loses_nothing_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder.path()).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        // The limit on files above tests the rest.
        eprintln!("only root can mount a small disk; this is not tested");
        return;
    }
    let mounted = Mounted(folder.path());
    let path = folder.path().join("x.db");
    let ballast = folder.path().join("ballast");
    fs::write(&ballast, vec![0; 600_000]).unwrap();
    let mut scribe = Scribe::start(path.to_str().unwrap(), Standing::new(), PLAIN);
    let mut n_failed = 0;
    let mut n_done_when_full = 0;
    loop {
        let Some(failure) = scribe.read().expect("it goes on after a failure") else {
            if n_failed == 3 && scribe.n_done > n_done_when_full + 3 {
                break;
            }
            continue;
        };
        assert!(failure.ends_with(" Full"), "{failure}");
        n_failed += 1;
        if n_failed == 3 {
            // Room is made while it runs, and it goes on by itself.
            fs::remove_file(&ballast).unwrap();
            n_done_when_full = scribe.n_done;
        }
        if n_failed > 3 {
            break;
        }
        std::io::Write::write_all(scribe.child.stdin.as_mut().unwrap(), b"\n").unwrap();
    }
    assert!(scribe.n_done > n_done_when_full, "nothing was written after room was made");
    scribe.child.kill().unwrap();
    scribe.finish();
    check_standing(&SqliteStore::open(&path).unwrap(), &scribe);
    drop(mounted);
}

/// A file system that goes when the test ends.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_server_that_dies_loses_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let address = cluster.database();
    drop(cluster::open(&address));
    let n_deaths = n_cases(4).min(40);
    let mut scribe = Scribe::start(&address, Standing::new(), PLAIN);
    for death in 0..n_deaths {
        let before = scribe.n_done;
        let start = Instant::now();
        let time = Duration::from_millis(fastrand::u64(50..300));
        while scribe.n_done < before + 5 || start.elapsed() < time {
            let failure = scribe.read().expect("it goes on");
            assert_eq!(failure, None, "no error is shown");
        }
        cluster.kill_server(death % 2 == 0);
        cluster.run_server();
    }
    // It goes on by itself after the last restart, and is then killed, too.
    let before = scribe.n_done;
    while scribe.n_done < before + 5 {
        assert_eq!(scribe.read().expect("it goes on"), None);
    }
    scribe.child.kill().unwrap();
    scribe.finish();
    // The server may still be at the last commit of a client that is gone.
    std::thread::sleep(Duration::from_millis(300));
    check_standing(&*cluster::open(&address), &scribe);
    eprintln!("{n_deaths} deaths of the server, {} batches acknowledged", scribe.n_done);
}
