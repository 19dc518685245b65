//! Processes killed at any time: everything they had acknowledged is stored, every handle is recallable, and the message chain is
//! intact.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_engine::{Engine, MachineClock};
use fanfold_store::{CheckMode, EndReason, NodeId, Relation, SessionFilter, SessionId, SqliteStore, Store};
use fanfold_testkit::Rng;
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, body, long_chat};
use crate::sessions::handles;

/// The commands that are killed.
const RUNS: [&str; 5] = ["append", "fold", "fork", "rotate", "import"];

/// Number of runs per store; limited, because each check reads the whole store.
const RUNS_PER_STORE: usize = 24;

/// Everything that the runs on a store have acknowledged.
#[derive(Default)]
struct ExpectedState {
    /// The last messages of what was taken, with how many there are up to each.
    tips: BTreeMap<NodeId, usize>,
    /// The handles that were printed, by their session.
    handles: BTreeSet<(SessionId, String)>,
    /// The sessions that were made, and how.
    made: Vec<(SessionId, SessionId, Relation)>,
}

/// KillTime a run is killed.
#[derive(Clone, Copy)]
enum KillTime {
    After(Duration),
    AtFirstOutput,
}

/// One store, its runs, and how they ended.
struct Bench {
    sandbox: Sandbox,
    messages: Vec<Value>,
    said: ExpectedState,
    n_runs: usize,
}

/// The ids of messages behind one another.
fn tip_of(messages: &[Value]) -> NodeId {
    let next = |tip, message: &Value| Some(NodeId::new(tip, &message.to_string()));
    messages.iter().fold(None, next).unwrap()
}

impl Bench {
    fn new() -> Bench {
        let (sandbox, messages) = (Sandbox::new(), long_chat(24));
        sandbox.write("chat.json", &body(&messages));
        let mut said = ExpectedState::default();
        for session in 0..3 {
            let ran = sandbox.run(&format!("fold --session s{session} chat.json -w 5k -q --store x.db"));
            assert_eq!(ran.code, 0, "{}", ran.err);
            let id = SessionId(format!("s{session}"));
            said.handles.extend(handles(&ran.out).into_iter().map(|handle| (id.clone(), handle)));
        }
        assert!(!said.handles.is_empty(), "it is folded");
        said.tips.insert(tip_of(&messages), messages.len());
        Bench { sandbox, messages, said, n_runs: 0 }
    }

    /// A session to do something with.
    fn session(&self, rng: &mut Rng) -> SessionId {
        let made = &self.said.made;
        let n = rng.below(3 + made.len().min(3));
        let name = |n| SessionId(format!("s{n}"));
        if n < 3 { name(n) } else { made[made.len() - (n - 2)].0.clone() }
    }

    /// Starts a run, kills it at some moment, and takes down what it had said. Whether it was over by then.
    fn run_and_kill(&mut self, what: &str, when: KillTime, rng: &mut Rng) -> bool {
        self.n_runs += 1;
        let session = self.session(rng);
        let n = 20 + rng.below(self.messages.len() - 20);
        let mut messages = self.messages[..n].to_vec();
        let is_one_of_many = what == "append" || what == "import";
        if is_one_of_many {
            // Something that nobody has said yet.
            messages.push(json!({ "role": "user", "content": format!("Run {}, please.", self.n_runs) }));
        }
        self.sandbox.write("chat.json", &body(&messages));
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("fanfold"));
        command.env_clear().env("HOME", self.sandbox.path("")).current_dir(self.sandbox.path(""));
        match what {
            "append" => command.args(["fold", "--session", &session.0, "chat.json", "-w", "900k"]),
            "fold" => command.args(["fold", "--session", &session.0, "chat.json", "-w", "5k"]),
            "import" => command.args(["sessions", "import", "chat.json"]),
            other => command.args(["sessions", other, &session.0]),
        };
        command.args(["--store", "x.db"]).stdin(Stdio::null());
        let is_over = match when {
            KillTime::After(time) => self.kill_after(&mut command, time),
            KillTime::AtFirstOutput => self.kill_at_first_word(&mut command, what == "import"),
        };
        self.take_down(what, &session, &messages);
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

    /// Kills a run as soon as it has said anything: by then what it says must be true.
    fn kill_at_first_word(&self, command: &mut Command, is_told_aside: bool) -> bool {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let mut said = [Vec::new(), Vec::new()];
        let mut first = [0];
        let (n, first_of) = if is_told_aside { (err.read(&mut first), 1) } else { (out.read(&mut first), 0) };
        child.kill().ok();
        child.wait().unwrap();
        said[first_of].extend_from_slice(&first[..n.unwrap()]);
        out.read_to_end(&mut said[0]).unwrap();
        err.read_to_end(&mut said[1]).unwrap();
        self.sandbox.write("out", &String::from_utf8_lossy(&said[0]));
        self.sandbox.write("err", &String::from_utf8_lossy(&said[1]));
        false
    }

    /// Takes down what a run had said when it ended.
    fn take_down(&mut self, what: &str, session: &SessionId, messages: &[Value]) {
        let (out, err) = (self.sandbox.read("out"), self.sandbox.read("err"));
        let said = &mut self.said;
        let is_taken = match what {
            "append" | "fold" => {
                said.handles.extend(handles(&out).into_iter().map(|handle| (session.clone(), handle)));
                // The messages are kept before the first byte leaves.
                !out.is_empty()
            }
            "import" => err.contains("1 session imported"),
            "fork" | "rotate" => {
                let relation = if what == "fork" { Relation::Fork } else { Relation::Rotation };
                let id = out.strip_suffix('\n').map(|id| SessionId(id.to_owned()));
                said.made.extend(id.map(|id| (id, session.clone(), relation)));
                false
            }
            other => panic!("{other}"),
        };
        if is_taken {
            said.tips.insert(tip_of(messages), messages.len());
        }
    }

    /// Opens the store again and checks all of it.
    fn check(&self) {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&self.sandbox.path("x.db")).unwrap());
        let findings = store.check(CheckMode::Report).unwrap();
        assert!(findings.is_empty(), "the chain and all that hangs on it: {findings:?}");
        for (tip, n_messages) in &self.said.tips {
            let last = store.node(*tip).unwrap().expect("what was taken is there");
            assert_eq!(last.depth as usize + 1, *n_messages);
        }
        let engine = Engine::new(Arc::clone(&store), Arc::new(MachineClock));
        let mut given: BTreeMap<SessionId, Vec<String>> = BTreeMap::new();
        for row in store.sessions(&SessionFilter::default()).unwrap() {
            assert_eq!(engine.check_handles(&row.id).unwrap().1, Vec::<String>::new(), "session {}", row.id);
            given.insert(row.id.clone(), engine.handles(&row.id).unwrap());
        }
        for (session, handle) in &self.said.handles {
            assert!(given[session].contains(handle), "session {session} has given {handle}");
        }
        for (id, parent, relation) in &self.said.made {
            let row = store.session(id).unwrap().expect("what was made is there");
            assert_eq!(row.parent, Some((parent.clone(), *relation)));
            let begin = row.tip.map(|tip| store.chain(tip, 0..1).unwrap().len());
            assert_eq!(begin, Some(1), "session {id} leads to its first message");
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
    let wanted = if is_long { 600 } else { 15 };
    let mut rng = Rng::new(7);
    let mut benches: Vec<Bench> = Vec::new();
    // Kills come at any moment of a run, and some after it: what came too late comes sooner next time.
    let mut latest_us = [200_000; RUNS.len()];
    let (mut n_killed, mut n_over) = ([0; RUNS.len()], 0);
    let (mut n_taken, mut n_handles, mut n_made) = (0, 0, 0);
    let mut checking = Duration::ZERO;
    while n_killed.iter().sum::<usize>() < wanted || n_over < wanted / 10 {
        // A few stores in turn.
        if benches.len() < if is_long { 3 } else { 1 } {
            benches.push(Bench::new());
        }
        let i = rng.below(benches.len());
        let n_so_far = n_killed.iter().sum::<usize>() + n_over;
        let what = n_so_far % RUNS.len();
        let after = Duration::from_micros(rng.below(latest_us[what]) as u64);
        let is_at_first_word = (n_so_far / RUNS.len()) % 3 == 1;
        if is_at_first_word {
            benches[i].run_and_kill(RUNS[what], KillTime::AtFirstOutput, &mut rng);
            n_killed[what] += 1;
        } else if benches[i].run_and_kill(RUNS[what], KillTime::After(after), &mut rng) {
            n_over += 1;
            latest_us[what] = latest_us[what] * 2 / 3 + 500;
        } else {
            n_killed[what] += 1;
            latest_us[what] = latest_us[what] * 3 / 2;
        }
        let start = Instant::now();
        benches[i].check();
        checking += start.elapsed();
        let is_last = n_killed.iter().sum::<usize>() >= wanted;
        if benches[i].n_runs == RUNS_PER_STORE || is_last {
            let Bench { sandbox, said, .. } = benches.swap_remove(i);
            (n_taken, n_handles, n_made) =
                (n_taken + said.tips.len(), n_handles + said.handles.len(), n_made + said.made.len());
            // Some as a person does it; every request is made again, byte for byte.
            let ran = sandbox.run("doctor --requests --store x.db");
            assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
            for (session, handle) in said.handles.iter().step_by(40) {
                let ran = sandbox.run(&format!("recall --session {session} {handle} --store x.db"));
                assert!(ran.code == 0 && !ran.out.is_empty(), "{session} {handle}: {}", ran.err);
            }
        }
    }
    eprintln!(
        "{n_killed:?} killed of {RUNS:?}, {n_over} over before; after each of them: {n_taken} conversations taken, \
         {n_handles} handles opened, {n_made} sessions made; {checking:.1?} of checking"
    );
}
