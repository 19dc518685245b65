//! A store on a small disk that fills up and gets free again at random times.
//!
//! Every answer must fit its room, nothing acknowledged may be lost, and the store must continue once there is room.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fanfold_testkit::Rng;
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
use fanfold_testkit::generators::growing_conversation::{GrowingConversation, HEADERS, PATH};
use serde_json::Value;

use super::Trial;
use super::http::{exchange, request};
use super::sandbox::Sandbox;
use super::table::Row;

const TARGET: &str = "every answer fits, nothing acknowledged lost, continues with room";
const DISK: &str = "6m";
const WINDOW: &str = "16k";
const ROOM: u64 = 12_000;
/// The size of a token in the usage that the scripted provider reports.
const PROVIDER_BYTES_PER_TOKEN: u64 = 4;
const LIMIT: Duration = Duration::from_secs(20);
/// The longest time until a store is written again after the disk was freed.
const RECOVERY: Duration = Duration::from_secs(10);

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    let (fold, serve) = ("full disk under `fold --session`", "full disk under `serve`");
    let Some(disk) = Disk::mount(&trial.folder().join("disk")) else {
        let reason = "a tmpfs cannot be mounted; root can";
        return Ok(vec![Row::skipped(fold, reason), Row::skipped(serve, reason)]);
    };
    let rows = [
        Row::from_result(fold, under_fold(trial, &disk, Row::new(fold, TARGET))),
        Row::from_result(serve, under_serve(trial, &disk, Row::new(serve, TARGET))),
    ];
    Ok(rows.into())
}

/// A mounted tmpfs; unmounted on drop.
struct Disk {
    path: PathBuf,
}

impl Disk {
    fn mount(path: &Path) -> Option<Disk> {
        fs::create_dir_all(path).ok()?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={DISK},mode=700"), "tmpfs"]).arg(path);
        let mounted = mount.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        mounted.success().then(|| Disk { path: path.to_owned() })
    }

    fn set_full(&self, is_full: bool) {
        if is_full {
            self.fill();
        } else {
            self.free();
        }
    }

    /// Writes until no byte is left.
    fn fill(&self) {
        let Ok(mut file) = File::options().create(true).append(true).open(self.ballast()) else { return };
        for size in [64 * 1024, 4096, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
    }

    fn free(&self) {
        let _ = fs::remove_file(self.ballast());
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    fn store(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // A process that was just killed may still use it; a lazy unmount waits for that.
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

fn under_fold(trial: &Trial, disk: &Disk, mut row: Row) -> anyhow::Result<Row> {
    let sandbox = Sandbox::new(trial, "full-disk-fold")?;
    let store = disk.store("fold.db");
    let mut rng = Rng::new(trial.seed);
    let mut conversation = GrowingConversation::new(trial.seed, 40_000, false);
    let (mut n_full, mut n_acknowledged) = (0, 0);
    for n in 0..trial.tries(12, 70) {
        // Begin with a full disk, so that the store cannot even be created.
        let is_full = n == 0 || rng.percent(50);
        disk.set_full(is_full);
        n_full += usize::from(is_full);
        let body = conversation.body();
        sandbox.write("chat.json", &body)?;
        let _ = fs::remove_file(sandbox.path("out.json"));
        let ran =
            sandbox.run(&format!("fold --session a chat.json -w {WINDOW} --store {store} -o out.json"))?;
        let tokens = tokens_of(&sandbox, &sandbox.path("out.json"))?;
        let fits = ran.is_ok() && tokens.is_some_and(|tokens| tokens <= ROOM);
        row.count(fits, || {
            let state = if is_full { "full" } else { "free" };
            format!("turn {n}, {state}: exit {:?}, {tokens:?} tokens: {}", ran.code, ran.err_text())
        });
        if !is_full && ran.is_ok() {
            n_acknowledged = n_messages(&body);
        }
        check_stored(&sandbox, &store, n_acknowledged, &format!("turn {n}"), &mut row)?;
        conversation.add_step(3_000);
    }
    disk.free();
    check_healthy(&sandbox, &store, &mut row)?;
    row.figure = format!("{n_full} turns on a full disk");
    Ok(row)
}

fn under_serve(trial: &Trial, disk: &Disk, mut row: Row) -> anyhow::Result<Row> {
    let sandbox = Sandbox::new(trial, "full-disk-serve")?;
    let store = disk.store("serve.db");
    let script = Script::new(|_| ScriptedReply { text: "Go on.".to_owned(), ..ScriptedReply::default() });
    let upstream = Upstream::start(Script { is_strict: false, ..script })?;
    let mut rng = Rng::new(trial.seed ^ 2);
    let mut conversation = GrowingConversation::new(trial.seed ^ 2, 40_000, false);
    disk.fill();
    let server = sandbox.serve(&upstream.url(), &store, &["-w", WINDOW])?;
    let mut n_full = 0;
    for n in 0..trial.tries(10, 60) {
        let is_full = n == 0 || rng.percent(50);
        disk.set_full(is_full);
        n_full += usize::from(is_full);
        let body = conversation.body();
        let bytes = request("POST", PATH, server.port, &HEADERS, body.as_bytes());
        let answer = exchange(server.port, &bytes, LIMIT);
        let sent = upstream.seen().pop().map(|seen| seen.body).unwrap_or_default();
        // The proxy learns the provider's count from the reported usage.
        let tokens = sent.len() as u64 / PROVIDER_BYTES_PER_TOKEN;
        let fits = answer.status == Some(200) && tokens > 0 && tokens <= ROOM;
        row.count(fits, || {
            let state = if is_full { "full" } else { "free" };
            let outcome = answer.header("x-fanfold").unwrap_or_default();
            format!("turn {n}, {state}: {}, {outcome}, {tokens} tokens sent", answer.describe())
        });
        conversation.add_step(3_000);
    }
    disk.free();
    // With room again, the whole conversation is stored within some seconds.
    let until = Instant::now() + RECOVERY;
    let body = conversation.body();
    let mut n_stored = 0;
    while n_stored < n_messages(&body) && Instant::now() < until {
        exchange(server.port, &request("POST", PATH, server.port, &HEADERS, body.as_bytes()), LIMIT);
        thread::sleep(Duration::from_millis(300));
        n_stored = stored_messages(&sandbox, &store)?;
    }
    row.count(n_stored >= n_messages(&body), || {
        format!(
            "{n_stored} of {} messages are stored {} s after the disk was freed",
            n_messages(&body),
            RECOVERY.as_secs()
        )
    });
    drop(server);
    check_healthy(&sandbox, &store, &mut row)?;
    row.figure = format!("{n_full} turns on a full disk");
    Ok(row)
}

/// The tokens of a body, counted by a run without a store.
fn tokens_of(sandbox: &Sandbox, file: &Path) -> anyhow::Result<Option<u64>> {
    let counted = sandbox.run(&format!("fold {} -w 1m --json", file.display()))?;
    Ok(counted.json()["tokens_whole"].as_u64())
}

fn n_messages(body: &str) -> usize {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body["messages"].as_array().map_or(0, Vec::len)
}

/// The number of messages of the longest session, as `sessions list` shows it.
fn stored_messages(sandbox: &Sandbox, store: &str) -> anyhow::Result<usize> {
    let list = sandbox.run(&format!("sessions list --json --store {store}"))?.json();
    let sessions = list.as_array().into_iter().flatten();
    Ok(sessions.filter_map(|session| session["messages"].as_u64()).max().unwrap_or(0) as usize)
}

/// Also on a full disk, the stored sessions can be listed.
fn check_stored(
    sandbox: &Sandbox,
    store: &str,
    n_acknowledged: usize,
    turn: &str,
    row: &mut Row,
) -> anyhow::Result<()> {
    if n_acknowledged > 0 {
        let n_stored = stored_messages(sandbox, store)?;
        row.count(n_stored >= n_acknowledged, || {
            format!("{turn}: {n_stored} of {n_acknowledged} acknowledged messages are listed")
        });
    }
    Ok(())
}

fn check_healthy(sandbox: &Sandbox, store: &str, row: &mut Row) -> anyhow::Result<()> {
    let doctor = sandbox.run(&format!("doctor --store {store}"))?;
    row.count(doctor.is_ok(), || format!("doctor: {}{}", doctor.out_text(), doctor.err_text()));
    Ok(())
}
