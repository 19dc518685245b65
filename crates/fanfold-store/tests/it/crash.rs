//! Acknowledged batches survive a kill, a full disk and a server crash.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fanfold_store::{SqliteStore, Store};

use crate::cluster::{self, Cluster};
use crate::model::n_cases;
use crate::writer_process::{PLAIN, StoreState, WriterProcess, apply_plan, store_state};

/// Lets a writer run for some time, then kills it. An early kill may come before it has opened the store.
pub(crate) fn run_and_kill(writer: &mut WriterProcess, time: Duration, is_early: bool) {
    while !is_early && writer.n_acknowledged == 0 {
        writer.read().unwrap();
    }
    let pid = writer.child.id().to_string();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(time);
        assert!(Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    });
    writer.finish();
    killer.join().unwrap();
}

/// Checks that the store has the last acknowledged state, or that after the one planned batch, and returns its state.
pub(crate) fn check_state(store: &dyn Store, writer: &WriterProcess) -> StoreState {
    let found = store_state(store);
    let planned = writer.plan.as_ref().map(|plan| apply_plan(&writer.acknowledged, plan));
    if found != writer.acknowledged {
        assert_eq!(
            Some(&found),
            planned.as_ref(),
            "the state is neither the acknowledged nor the planned one"
        );
    }
    found
}

#[test]
fn acknowledged_batches_survive_a_kill() {
    let n_kills = if std::env::var_os("FANFOLD_MANY").is_some() { 600 } else { 60 };
    let (mut n_acknowledged, mut n_unanswered) = (0, 0);
    let mut folder = tempfile::tempdir().unwrap();
    let mut acknowledged = StoreState::new();
    for kill in 0..n_kills {
        if kill % 12 == 0 {
            folder = tempfile::tempdir().unwrap();
            acknowledged = StoreState::new();
        }
        let path = folder.path().join("x.db");
        let mut writer = WriterProcess::start(path.to_str().unwrap(), acknowledged, PLAIN);
        run_and_kill(&mut writer, Duration::from_micros(fastrand::u64(0..60_000)), kill % 6 == 0);
        acknowledged = check_state(&SqliteStore::open(&path).unwrap(), &writer);
        n_acknowledged += writer.n_acknowledged;
        n_unanswered += u32::from(acknowledged != writer.acknowledged);
    }
    eprintln!(
        "{n_kills} kills, {n_acknowledged} batches acknowledged, {n_unanswered} written and not acknowledged"
    );
    assert!(n_acknowledged > n_kills, "{n_acknowledged} batches in {n_kills} runs");
}

#[test]
fn file_size_limit_loses_nothing() {
    // Files may grow to about 800 kB: writing the log fails first, or copying the log to the file.
    let limit = "trap '' XFSZ; ulimit -f 800; exec \"$@\"";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let mut acknowledged = StoreState::new();
    for _ in 0..n_cases(2) {
        let mut writer = WriterProcess::start(path.to_str().unwrap(), acknowledged, limit);
        let mut n_failed = 0;
        while n_failed < 5 {
            if let Some(failure) = writer.read().expect("the writer continues after a failure") {
                assert!(failure.ends_with(" DiskFull"), "{failure}");
                n_failed += 1;
                let stdin = writer.child.stdin.as_mut().unwrap();
                std::io::Write::write_all(stdin, b"\n").unwrap();
            }
        }
        writer.child.kill().unwrap();
        writer.finish();
        // Without the limit, writing works again.
        let store = SqliteStore::open(&path).unwrap();
        acknowledged = check_state(&store, &writer);
        crate::shorthand::write(
            &store,
            vec![crate::shorthand::create("more"), crate::shorthand::append("more", &["room"])],
        );
        crate::shorthand::write(&store, vec![fanfold_store::Op::Delete(crate::shorthand::id("more"))]);
        store.collect_garbage().unwrap();
    }
    assert!(!acknowledged.is_empty());
}

#[test]
fn full_disk_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=2m", "tmpfs"]).arg(folder.path()).output();
    if !mount.is_ok_and(|output| output.status.success()) {
        // The test of the file size limit covers the rest.
        eprintln!("skipped: only root can mount a small disk");
        return;
    }
    let mounted = Mounted(folder.path());
    let path = folder.path().join("x.db");
    let ballast = folder.path().join("ballast");
    fs::write(&ballast, vec![0; 600_000]).unwrap();
    let mut writer = WriterProcess::start(path.to_str().unwrap(), StoreState::new(), PLAIN);
    let mut n_failed = 0;
    let mut n_done_when_full = 0;
    loop {
        let Some(failure) = writer.read().expect("the writer continues after a failure") else {
            if n_failed == 3 && writer.n_acknowledged > n_done_when_full + 3 {
                break;
            }
            continue;
        };
        assert!(failure.ends_with(" DiskFull"), "{failure}");
        n_failed += 1;
        if n_failed == 3 {
            // Free space while the writer runs; it continues by itself.
            fs::remove_file(&ballast).unwrap();
            n_done_when_full = writer.n_acknowledged;
        }
        if n_failed > 3 {
            break;
        }
        std::io::Write::write_all(writer.child.stdin.as_mut().unwrap(), b"\n").unwrap();
    }
    assert!(writer.n_acknowledged > n_done_when_full, "nothing was written after space was freed");
    writer.child.kill().unwrap();
    writer.finish();
    check_state(&SqliteStore::open(&path).unwrap(), &writer);
    drop(mounted);
}

/// A mounted file system that is unmounted when the test ends.
struct Mounted<'a>(&'a Path);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn server_crash_loses_nothing() {
    let Some(cluster) = Cluster::start() else { return };
    let address = cluster.database();
    drop(cluster::open(&address));
    let n_crashes = n_cases(4).min(40);
    let mut writer = WriterProcess::start(&address, StoreState::new(), PLAIN);
    for crash in 0..n_crashes {
        let before = writer.n_acknowledged;
        let start = Instant::now();
        let time = Duration::from_millis(fastrand::u64(50..300));
        while writer.n_acknowledged < before + 5 || start.elapsed() < time {
            let failure = writer.read().expect("the writer continues");
            assert_eq!(failure, None, "the writer sees no error");
        }
        cluster.kill_server(crash % 2 == 0);
        cluster.run_server();
    }
    // The writer continues by itself after the last restart, and is then killed.
    let before = writer.n_acknowledged;
    while writer.n_acknowledged < before + 5 {
        assert_eq!(writer.read().expect("the writer continues"), None);
    }
    writer.child.kill().unwrap();
    writer.finish();
    // The server may still be processing the last commit of the killed client.
    std::thread::sleep(Duration::from_millis(300));
    check_state(&*cluster::open(&address), &writer);
    eprintln!("{n_crashes} server crashes, {} batches acknowledged", writer.n_acknowledged);
}
