//! Processes killed at random times: everything they acknowledged is stored, every handle can be recalled, and the
//! message chain is intact.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_engine::{MachineClock, SessionEngine};
use fanfold_store::{CheckMode, EndReason, NodeId, Relation, SessionFilter, SessionId, SqliteStore, Store};
use fanfold_testkit::Rng;
use fanfold_testkit::handles_in;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, body, long_chat};

/// The commands that are killed.
const RUNS: [&str; 5] = ["append", "fold", "fork", "rotate", "import"];

/// Number of runs per store; limited, because each check reads the whole store.
const RUNS_PER_STORE: usize = 24;

/// Everything that the runs on a store have acknowledged.
#[derive(Default)]
struct ExpectedState {
    /// The last message of each stored conversation, with the length of the conversation.
    tips: BTreeMap<NodeId, usize>,
    /// The handles that were printed, by their session.
    handles: BTreeSet<(SessionId, String)>,
    /// The created sessions, with their parents and relations.
    created: Vec<(SessionId, SessionId, Relation)>,
}

/// When a run is killed.
#[derive(Clone, Copy)]
enum KillTime {
    After(Duration),
    AtFirstOutput,
}

/// One store, and what its runs have acknowledged.
struct Bench {
    sandbox: Sandbox,
    messages: Vec<Value>,
    acknowledged: ExpectedState,
    n_runs: usize,
}

/// The id of the last message of a chain.
fn chain_tip(messages: &[Value]) -> NodeId {
    let next = |tip, message: &Value| Some(NodeId::new(tip, &message.to_string()));
    messages.iter().fold(None, next).unwrap()
}

impl Bench {
    fn new() -> Bench {
        let (sandbox, messages) = (Sandbox::new(), long_chat(24));
        sandbox.write("chat.json", &body(&messages));
        let mut acknowledged = ExpectedState::default();
        for session in 0..3 {
            let ran = sandbox.run(&format!("fold --session s{session} chat.json -w 5k -q --store x.db"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            let id = SessionId(format!("s{session}"));
            acknowledged.handles.extend(handles_in(&ran.out).into_iter().map(|handle| (id.clone(), handle)));
        }
        assert!(!acknowledged.handles.is_empty(), "it is folded");
        acknowledged.tips.insert(chain_tip(&messages), messages.len());
        Bench { sandbox, messages, acknowledged, n_runs: 0 }
    }

    /// A random existing session.
    fn session(&self, rng: &mut Rng) -> SessionId {
        let created = &self.acknowledged.created;
        let n = rng.below(3 + created.len().min(3));
        let name = |n| SessionId(format!("s{n}"));
        if n < 3 { name(n) } else { created[created.len() - (n - 2)].0.clone() }
    }

    /// Starts a run, kills it, and records its output. Returns whether it had already ended.
    fn run_and_kill(&mut self, kind: &str, time: KillTime, rng: &mut Rng) -> bool {
        self.n_runs += 1;
        let session = self.session(rng);
        let n = 20 + rng.below(self.messages.len() - 20);
        let mut messages = self.messages[..n].to_vec();
        let adds_message = kind == "append" || kind == "import";
        if adds_message {
            // A message that no session contains yet.
            messages.push(json!({ "role": "user", "content": format!("Run {}, please.", self.n_runs) }));
        }
        self.sandbox.write("chat.json", &body(&messages));
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("fanfold"));
        command.env_clear().env("HOME", self.sandbox.path("")).current_dir(self.sandbox.path(""));
        match kind {
            "append" => command.args(["fold", "--session", &session.0, "chat.json", "-w", "900k"]),
            "fold" => command.args(["fold", "--session", &session.0, "chat.json", "-w", "5k"]),
            "import" => command.args(["sessions", "import", "chat.json"]),
            other => command.args(["sessions", other, &session.0]),
        };
        command.args(["--store", "x.db"]).stdin(Stdio::null());
        let is_over = match time {
            KillTime::After(time) => self.kill_after(&mut command, time),
            KillTime::AtFirstOutput => self.kill_at_first_output(&mut command, kind == "import"),
        };
        self.record_output(kind, &session, &messages);
        is_over
    }

    fn kill_after(&self, command: &mut Command, time: Duration) -> bool {
        let file = |name: &str| File::create(self.sandbox.path(name)).unwrap();
        let mut child = command.stdout(file("out")).stderr(file("err")).spawn().unwrap();
        std::thread::sleep(time);
        let is_over = child.try_wait().unwrap().is_some();
        child.kill().ok();
        child.wait().unwrap();
        is_over
    }

    /// Kills a run at its first output, when everything that it reports must be stored.
    fn kill_at_first_output(&self, command: &mut Command, reports_on_stderr: bool) -> bool {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let mut acknowledged = [Vec::new(), Vec::new()];
        let mut first = [0];
        let (n, first_of) =
            if reports_on_stderr { (err.read(&mut first), 1) } else { (out.read(&mut first), 0) };
        child.kill().ok();
        child.wait().unwrap();
        acknowledged[first_of].extend_from_slice(&first[..n.unwrap()]);
        out.read_to_end(&mut acknowledged[0]).unwrap();
        err.read_to_end(&mut acknowledged[1]).unwrap();
        self.sandbox.write("out", &String::from_utf8_lossy(&acknowledged[0]));
        self.sandbox.write("err", &String::from_utf8_lossy(&acknowledged[1]));
        false
    }

    /// Records what a run acknowledged before it ended.
    fn record_output(&mut self, kind: &str, session: &SessionId, messages: &[Value]) {
        let (out, err) = (self.sandbox.read("out"), self.sandbox.read("err"));
        let acknowledged = &mut self.acknowledged;
        let is_stored = match kind {
            "append" | "fold" => {
                acknowledged
                    .handles
                    .extend(handles_in(&out).into_iter().map(|handle| (session.clone(), handle)));
                // The messages are stored before the first byte of output.
                !out.is_empty()
            }
            "import" => err.contains("1 session imported"),
            "fork" | "rotate" => {
                let relation = if kind == "fork" { Relation::Fork } else { Relation::Rotation };
                let id = out.strip_suffix('\n').map(|id| SessionId(id.to_owned()));
                acknowledged.created.extend(id.map(|id| (id, session.clone(), relation)));
                false
            }
            other => panic!("{other}"),
        };
        if is_stored {
            acknowledged.tips.insert(chain_tip(messages), messages.len());
        }
    }

    /// Opens the store again and checks all of it.
    fn check(&self) {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&self.sandbox.path("x.db")).unwrap());
        let findings = store.check(CheckMode::Report).unwrap();
        assert!(findings.is_empty(), "the store has problems: {findings:?}");
        for (tip, n_messages) in &self.acknowledged.tips {
            let last = store.node(*tip).unwrap().expect("an acknowledged message is stored");
            assert_eq!(last.depth as usize + 1, *n_messages);
        }
        let engine = SessionEngine::new(Arc::clone(&store), Arc::new(MachineClock));
        let mut handles_by_session: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
        for row in store.sessions(&SessionFilter::default()).unwrap() {
            assert_eq!(engine.check_handles(&row.id).unwrap().1, Vec::<String>::new(), "session {}", row.id);
            handles_by_session.insert(row.id.clone(), engine.handles(&row.id).unwrap());
        }
        for (session, handle) in &self.acknowledged.handles {
            assert!(
                handles_by_session[session].contains(handle),
                "session {session} lost the handle {handle}"
            );
        }
        for (id, parent, relation) in &self.acknowledged.created {
            let row = store.session(id).unwrap().expect("a created session is stored");
            assert_eq!(row.parent, Some((parent.clone(), *relation)));
            let begin = row.tip.map(|tip| store.chain(tip, 0..1).unwrap().len());
            assert_eq!(begin, Some(1), "the chain of session {id} reaches its first message");
            let parent = store.session(parent).unwrap().unwrap();
            let was_reopened = parent.ended.is_none();
            if *relation == Relation::Rotation && !was_reopened {
                assert_eq!(parent.ended.unwrap().1, EndReason::Compression);
            }
        }
    }
}

#[test]
fn stored_messages_survive_a_kill() {
    let is_long = std::env::var_os("FANFOLD_MANY").is_some();
    let n_wanted = if is_long { 600 } else { 15 };
    let mut rng = Rng::new(7);
    let mut benches: Vec<Bench> = Vec::new();
    // The kill time is random and adapts: a kill after the end of a run makes the next one earlier.
    let mut latest_us = [200_000; RUNS.len()];
    let (mut n_killed, mut n_over) = ([0; RUNS.len()], 0);
    let (mut n_stored, mut n_handles, mut n_created) = (0, 0, 0);
    let mut checking = Duration::ZERO;
    while n_killed.iter().sum::<usize>() < n_wanted || n_over < n_wanted / 10 {
        // Use a few stores in turn.
        if benches.len() < if is_long { 3 } else { 1 } {
            benches.push(Bench::new());
        }
        let i = rng.below(benches.len());
        let n_runs = n_killed.iter().sum::<usize>() + n_over;
        let kind = n_runs % RUNS.len();
        let after = Duration::from_micros(rng.below(latest_us[kind]) as u64);
        let is_at_first_output = (n_runs / RUNS.len()) % 3 == 1;
        if is_at_first_output {
            benches[i].run_and_kill(RUNS[kind], KillTime::AtFirstOutput, &mut rng);
            n_killed[kind] += 1;
        } else if benches[i].run_and_kill(RUNS[kind], KillTime::After(after), &mut rng) {
            n_over += 1;
            latest_us[kind] = latest_us[kind] * 2 / 3 + 500;
        } else {
            n_killed[kind] += 1;
            latest_us[kind] = latest_us[kind] * 3 / 2;
        }
        let start = Instant::now();
        benches[i].check();
        checking += start.elapsed();
        let is_last = n_killed.iter().sum::<usize>() >= n_wanted;
        if benches[i].n_runs == RUNS_PER_STORE || is_last {
            let Bench { sandbox, acknowledged, .. } = benches.swap_remove(i);
            (n_stored, n_handles, n_created) = (
                n_stored + acknowledged.tips.len(),
                n_handles + acknowledged.handles.len(),
                n_created + acknowledged.created.len(),
            );
            // The commands agree: every request is rebuilt byte for byte, and handles are recalled.
            let ran = sandbox.run("doctor --requests --store x.db");
            assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
            for (session, handle) in acknowledged.handles.iter().step_by(40) {
                let ran = sandbox.run(&format!("recall --session {session} {handle} --store x.db"));
                assert!(ran.code == 0 && !ran.out.is_empty(), "{session} {handle}: {}", ran.err);
            }
        }
    }
    eprintln!(
        "{n_killed:?} killed of {RUNS:?}, {n_over} ended before; checked after each run: {n_stored} conversations stored, \
         {n_handles} handles recalled, {n_created} sessions created; {checking:.1?} of checking"
    );
}
