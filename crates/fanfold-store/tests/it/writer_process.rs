//! A program that writes until it is killed, and prints each batch before and after its commit.
//!
//! The program is this test binary, run with a single test and a store address in the environment. It prints two
//! lines per batch:
//!
//! ```text
//! plan 12 a=<tip>,4,1,a,-  b=…    before the commit: the resulting states of the changed sessions
//! done 12                         after the commit
//! ```
//!
//! After a kill the store must have exactly the state after the last `done`, or after the one `plan` that follows it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use fanfold_store::{
    Batch, BlobId, CheckMode, EndReason, Millis, NewEvent, NewMessage, NewSession, NodeId, Op, OpenMode,
    Relation, SessionFilter, SessionId, SessionRow, SessionUpdate, Store,
};

const ADDRESS: &str = "FANFOLD_WRITER";
const OWN_SESSIONS: &str = "FANFOLD_WRITER_OWN_SESSIONS";

/// A shell line that runs the writer.
pub(crate) const PLAIN: &str = "exec \"$@\"";

/// A shell line that runs the writer on its own sessions only, for concurrent writers.
pub(crate) const OWN_SESSIONS_ONLY: &str = "exec env FANFOLD_WRITER_OWN_SESSIONS=1 \"$@\"";

/// The state of each session as text.
pub(crate) type StoreState = BTreeMap<String, String>;

#[test]
fn run_writer() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let store = fanfold_store::open(&address, OpenMode::Write).unwrap();
    report("open");
    let mut sessions: BTreeMap<SessionId, SessionRow> = BTreeMap::new();
    // With concurrent writers, it changes only sessions that it created.
    if std::env::var_os(OWN_SESSIONS).is_none() {
        for row in store.sessions(&SessionFilter::default()).unwrap() {
            sessions.insert(row.id.clone(), row);
        }
    }
    for n in 0u64.. {
        let before = sessions.clone();
        let ops = random_ops(&mut sessions);
        let changed = sessions.values().filter(|row| before.get(&row.id) != Some(row));
        let deleted = before.keys().filter(|id| !sessions.contains_key(id)).map(|id| format!("{id}=gone"));
        let lines: Vec<String> =
            changed.map(|row| format!("{}={}", row.id, session_state(row))).chain(deleted).collect();
        report(&format!("plan {n} {}", lines.join(" ")));
        match store.commit(&Batch { at: Millis(1), expected_tips: Vec::new(), ops }) {
            Ok(_) => report(&format!("done {n}")),
            Err(error) => {
                report(&format!("failed {n} {error:?}"));
                sessions = before;
                // The test frees space and writes a line, or kills this process.
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).unwrap();
            }
        }
    }
}

fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn session_state(row: &SessionRow) -> String {
    let tip = row.tip.map_or("-".to_owned(), |tip| tip.to_string());
    let ended = row.ended.as_ref().map_or("-", |(_, reason)| reason.name());
    format!("{tip},{},{},{},{ended}", row.n_messages, row.n_events, row.root)
}

/// Returns random operations: import, fork, rotate, delete, append a step with an event, or append messages.
fn random_ops(sessions: &mut BTreeMap<SessionId, SessionRow>) -> Vec<Op> {
    let live: Vec<SessionId> = sessions.keys().cloned().collect();
    let existing = (!live.is_empty()).then(|| live[fastrand::usize(..live.len())].clone());
    let fresh = SessionId(format!("s{:012x}", fastrand::u64(..) >> 16));
    let mut ops = Vec::new();
    match (fastrand::u8(..20), existing) {
        (0, _) | (_, None) => {
            // An import: a session with all its messages in one batch.
            create(sessions, &mut ops, &fresh, None);
            append(sessions, &mut ops, &fresh, fastrand::usize(1..120));
        }
        (1..=2, Some(parent)) => {
            create(sessions, &mut ops, &fresh, Some((&parent, Relation::Fork)));
            append(sessions, &mut ops, &fresh, fastrand::usize(0..3));
        }
        (3..=4, Some(parent)) => {
            let row = sessions.get_mut(&parent).unwrap();
            row.ended.get_or_insert((Millis(1), EndReason::Compression));
            ops.push(Op::Update(parent.clone(), SessionUpdate::End(EndReason::Compression)));
            create(sessions, &mut ops, &fresh, Some((&parent, Relation::Rotation)));
            note(sessions, &mut ops, &fresh);
        }
        (5, Some(id)) if sessions.len() > 6 => {
            sessions.remove(&id);
            ops.push(Op::Delete(id));
        }
        (6..=9, Some(id)) => {
            append(sessions, &mut ops, &id, 1);
            note(sessions, &mut ops, &id);
        }
        (_, Some(id)) => append(sessions, &mut ops, &id, fastrand::usize(1..5)),
    }
    ops
}

fn create(
    sessions: &mut BTreeMap<SessionId, SessionRow>,
    ops: &mut Vec<Op>,
    id: &SessionId,
    parent: Option<(&SessionId, Relation)>,
) {
    let from = parent.map(|(parent, _)| &sessions[parent]);
    let (source, format) = ("writer".into(), "openai".into());
    let parent = parent.map(|(parent, relation)| (parent.clone(), relation));
    let new = NewSession { id: id.clone(), source, format, parent, tip: from.and_then(|row| row.tip) };
    let row = new.to_row(from.map(|row| &row.root), from.map_or(0, |row| row.n_messages), Millis(1));
    ops.push(Op::Create(new));
    sessions.insert(id.clone(), row);
}

fn append(sessions: &mut BTreeMap<SessionId, SessionRow>, ops: &mut Vec<Op>, id: &SessionId, n: usize) {
    let row = sessions.get_mut(id).unwrap();
    let mut messages = Vec::new();
    for _ in 0..n {
        let word: String =
            std::iter::repeat_with(fastrand::alphanumeric).take(fastrand::usize(..9000)).collect();
        let json = format!("{{\"role\":\"user\",\"content\":\"{word}\"}}");
        row.tip = Some(NodeId::new(row.tip, &json));
        row.n_messages += 1;
        messages.push(NewMessage { json, at: None });
    }
    ops.push(Op::Append(id.clone(), messages));
}

fn note(sessions: &mut BTreeMap<SessionId, SessionRow>, ops: &mut Vec<Op>, id: &SessionId) {
    let bytes = fastrand::u64(..).to_le_bytes().repeat(fastrand::usize(1..300));
    let body = format!("{{\"blob\":\"{}\"}}", BlobId::new(&bytes));
    ops.push(Op::PutBlob(bytes));
    ops.push(Op::AddEvent(id.clone(), NewEvent { kind: "fold".into(), body }));
    sessions.get_mut(id).unwrap().n_events += 1;
}

/// A running writer process, as the test sees it.
pub(crate) struct WriterProcess {
    pub(crate) child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// The states of the sessions after the last `done`.
    pub(crate) acknowledged: StoreState,
    /// The planned changes of the last `plan` without a `done`.
    pub(crate) plan: Option<StoreState>,
    /// The states after each acknowledged batch, the newest last.
    pub(crate) history: Vec<StoreState>,
    /// The number of acknowledged batches.
    pub(crate) n_acknowledged: u32,
}

impl WriterProcess {
    /// Starts a writer on a store with the state `acknowledged`. `wrapper` is a shell line that runs the writer.
    pub(crate) fn start(address: &str, acknowledged: StoreState, wrapper: &str) -> WriterProcess {
        let mut command = Command::new("sh");
        command.args(["-c", wrapper, "sh"]).arg(std::env::current_exe().unwrap());
        command
            .args(["--exact", "writer_process::run_writer", "--nocapture", "--test-threads=1"])
            .env(ADDRESS, address);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        WriterProcess {
            child,
            lines,
            history: vec![acknowledged.clone()],
            acknowledged,
            plan: None,
            n_acknowledged: 0,
        }
    }

    /// Reads one line of output; `None` at its end. Returns the line if it reports a failure.
    pub(crate) fn read(&mut self) -> Option<Option<String>> {
        let line = self.lines.next()?.ok()?;
        let mut words = line.split(' ');
        match words.next() {
            Some("plan") => {
                let sessions = words.skip(1).filter_map(|word| word.split_once('='));
                self.plan = Some(sessions.map(|(id, state)| (id.to_owned(), state.to_owned())).collect());
            }
            Some("done") => {
                let plan = self.plan.take().unwrap();
                self.acknowledged = apply_plan(&self.acknowledged, &plan);
                self.history.push(self.acknowledged.clone());
                self.n_acknowledged += 1;
            }
            Some("failed") => {
                self.plan = None;
                return Some(Some(line));
            }
            _ => {}
        }
        Some(None)
    }

    /// Reads the remaining output and waits for the process to end.
    pub(crate) fn finish(&mut self) {
        while self.read().is_some() {}
        self.child.wait().unwrap();
    }
}

/// Returns the states of the sessions after a planned batch.
pub(crate) fn apply_plan(acknowledged: &StoreState, plan: &StoreState) -> StoreState {
    let mut all = acknowledged.clone();
    for (id, state) in plan {
        if state == "gone" {
            all.remove(id);
        } else {
            all.insert(id.clone(), state.clone());
        }
    }
    all
}

/// Checks the whole store, and returns the states of its sessions.
pub(crate) fn store_state(store: &dyn Store) -> StoreState {
    assert_eq!(findings_text(store), "");
    let mut all = StoreState::new();
    for row in store.sessions(&SessionFilter::default()).unwrap() {
        let chain = row.tip.map_or(Vec::new(), |tip| store.chain(tip, 0..u32::MAX).unwrap());
        assert_eq!(chain.len(), row.n_messages as usize);
        let mut parent = None;
        for node in &chain {
            assert_eq!((node.parent, node.id), (parent, NodeId::new(parent, &node.json)));
            parent = Some(node.id);
        }
        let events = store.events(&row.id, 0).unwrap();
        assert_eq!(events.len(), row.n_events as usize);
        for event in events {
            let body: serde_json::Value = serde_json::from_str(&event.body).unwrap();
            let id: BlobId = body["blob"].as_str().unwrap().parse().unwrap();
            assert_eq!(BlobId::new(&store.blob(id).unwrap().unwrap()), id);
        }
        all.insert(row.id.0.clone(), session_state(&row));
    }
    all
}

/// Returns the findings of a check as text, without unreferenced blobs, which wait for garbage collection.
pub(crate) fn findings_text(store: &dyn Store) -> String {
    let findings = store.check(CheckMode::Report).unwrap();
    let findings = findings.iter().filter(|finding| finding.location != "blobs");
    findings.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
