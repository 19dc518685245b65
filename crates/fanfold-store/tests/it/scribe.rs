//! A program that writes until it is killed, and tells what it is about to write and when that is safe.
//!
//! It is this test binary again, with one test and an address in its environment. Each batch is told twice:
//!
//! ```text
//! plan 12 a=<tip>,4,1,a,-  b=…    before the commit: how the sessions it changes will stand
//! done 12                         after it
//! ```
//!
//! So after a kill the store must stand exactly as the last `done` says, or as the one `plan` behind it does.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use fanfold_store::{
    Batch, BlobId, CheckMode, EndReason, Millis, NewEvent, NewMessage, NewSession, NodeId, Op, OpenMode,
    Relation, SessionChange, SessionFilter, SessionId, SessionRow, Store,
};

const ADDRESS: &str = "FANFOLD_SCRIBE";
const ALONE: &str = "FANFOLD_SCRIBE_ALONE";

/// Runs the scribe as it is.
pub(crate) const PLAIN: &str = "exec \"$@\"";

/// Runs it beside others.
pub(crate) const BESIDE_OTHERS: &str = "exec env FANFOLD_SCRIBE_ALONE=1 \"$@\"";

/// How each session stands, as a line of text.
pub(crate) type Standing = BTreeMap<String, String>;

#[test]
fn scribe() {
    let Ok(address) = std::env::var(ADDRESS) else { return };
    let store = fanfold_store::open(&address, OpenMode::Write).unwrap();
    tell("open");
    let mut pages: BTreeMap<SessionId, SessionRow> = BTreeMap::new();
    // Beside others it keeps to its own sessions.
    if std::env::var_os(ALONE).is_none() {
        for row in store.sessions(&SessionFilter::default()).unwrap() {
            pages.insert(row.id.clone(), row);
        }
    }
    for n in 0u64.. {
        let before = pages.clone();
        let ops = draw(&mut pages);
        let changed = pages.values().filter(|row| before.get(&row.id) != Some(row));
        let gone = before.keys().filter(|id| !pages.contains_key(id)).map(|id| format!("{id}=gone"));
        let lines: Vec<String> =
            changed.map(|row| format!("{}={}", row.id, standing(row))).chain(gone).collect();
        tell(&format!("plan {n} {}", lines.join(" ")));
        match store.commit(&Batch { at: Millis(1), expected_tips: Vec::new(), ops }) {
            Ok(_) => tell(&format!("done {n}")),
            Err(error) => {
                tell(&format!("failed {n} {error:?}"));
                pages = before;
                // Whoever watches makes room, or ends us.
                let mut line = String::new();
                std::io::stdin().read_line(&mut line).unwrap();
            }
        }
    }
}

fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn standing(row: &SessionRow) -> String {
    let tip = row.tip.map_or("-".to_owned(), |tip| tip.to_string());
    let ended = row.ended.as_ref().map_or("-", |(_, reason)| reason.name());
    format!("{tip},{},{},{},{ended}", row.n_messages, row.n_events, row.root)
}

/// Draws what to do next: append a step, fork, rotate, import, note a fold, rewind, delete.
fn draw(pages: &mut BTreeMap<SessionId, SessionRow>) -> Vec<Op> {
    let live: Vec<SessionId> = pages.keys().cloned().collect();
    let some = (!live.is_empty()).then(|| live[fastrand::usize(..live.len())].clone());
    let fresh = SessionId(format!("s{:012x}", fastrand::u64(..) >> 16));
    let mut ops = Vec::new();
    match (fastrand::u8(..20), some) {
        (0, _) | (_, None) => {
            // An import: a session with all its messages at once.
            create(pages, &mut ops, &fresh, None);
            append(pages, &mut ops, &fresh, fastrand::usize(1..120));
        }
        (1..=2, Some(parent)) => {
            create(pages, &mut ops, &fresh, Some((&parent, Relation::Fork)));
            append(pages, &mut ops, &fresh, fastrand::usize(0..3));
        }
        (3..=4, Some(parent)) => {
            let row = pages.get_mut(&parent).unwrap();
            row.ended.get_or_insert((Millis(1), EndReason::Compression));
            ops.push(Op::Update(parent.clone(), SessionChange::End(EndReason::Compression)));
            create(pages, &mut ops, &fresh, Some((&parent, Relation::Rotation)));
            note(pages, &mut ops, &fresh);
        }
        (5, Some(id)) if pages.len() > 6 => {
            pages.remove(&id);
            ops.push(Op::Delete(id));
        }
        (6..=9, Some(id)) => {
            append(pages, &mut ops, &id, 1);
            note(pages, &mut ops, &id);
        }
        (_, Some(id)) => append(pages, &mut ops, &id, fastrand::usize(1..5)),
    }
    ops
}

fn create(
    pages: &mut BTreeMap<SessionId, SessionRow>,
    ops: &mut Vec<Op>,
    id: &SessionId,
    parent: Option<(&SessionId, Relation)>,
) {
    let from = parent.map(|(parent, _)| pages[parent].clone());
    let tip = from.as_ref().and_then(|row| row.tip);
    let is_rotation = parent.is_some_and(|(_, relation)| relation == Relation::Rotation);
    let row = SessionRow {
        id: id.clone(),
        source: "scribe".into(),
        format: "openai".into(),
        model: None,
        title: None,
        goal: None,
        parent: parent.map(|(parent, relation)| (parent.clone(), relation)),
        root: from.as_ref().filter(|_| is_rotation).map_or(id.clone(), |row| row.root.clone()),
        tip,
        n_messages: from.map_or(0, |row| row.n_messages),
        n_events: 0,
        started_at: Millis(1),
        updated_at: Millis(1),
        ended: None,
    };
    let (source, format) = (row.source.clone(), row.format.clone());
    ops.push(Op::Create(NewSession { id: id.clone(), source, format, parent: row.parent.clone(), tip }));
    pages.insert(id.clone(), row);
}

fn append(pages: &mut BTreeMap<SessionId, SessionRow>, ops: &mut Vec<Op>, id: &SessionId, n: usize) {
    let row = pages.get_mut(id).unwrap();
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

fn note(pages: &mut BTreeMap<SessionId, SessionRow>, ops: &mut Vec<Op>, id: &SessionId) {
    let bytes = fastrand::u64(..).to_le_bytes().repeat(fastrand::usize(1..300));
    let body = format!("{{\"blob\":\"{}\"}}", BlobId::new(&bytes));
    ops.push(Op::PutBlob(bytes));
    ops.push(Op::AddEvent(id.clone(), NewEvent { kind: "fold".into(), body }));
    pages.get_mut(id).unwrap().n_events += 1;
}

/// The scribe at work, seen from outside.
pub(crate) struct Scribe {
    pub(crate) child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// How the sessions stand by the last `done`.
    pub(crate) safe: Standing,
    /// What was planned behind it.
    pub(crate) plan: Option<Standing>,
    /// How they stood after each of them, the last one last.
    pub(crate) history: Vec<Standing>,
    /// How many batches were acknowledged.
    pub(crate) n_done: u32,
}

impl Scribe {
    /// Starts one on a store that stands like this. `wrapper` is a shell line that ends in running it.
    pub(crate) fn start(address: &str, safe: Standing, wrapper: &str) -> Scribe {
        let mut command = Command::new("sh");
        command.args(["-c", wrapper, "sh"]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "scribe::scribe", "--nocapture", "--test-threads=1"]).env(ADDRESS, address);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Scribe { child, lines, history: vec![safe.clone()], safe, plan: None, n_done: 0 }
    }

    /// Reads one line of it; false at its end. A failure is given back.
    pub(crate) fn read(&mut self) -> Option<Option<String>> {
        let line = self.lines.next()?.ok()?;
        let mut words = line.split(' ');
        match words.next() {
            Some("plan") => {
                let sessions = words.skip(1).filter_map(|word| word.split_once('='));
                self.plan = Some(sessions.map(|(id, stands)| (id.to_owned(), stands.to_owned())).collect());
            }
            Some("done") => {
                let plan = self.plan.take().unwrap();
                self.safe = after(&self.safe, &plan);
                self.history.push(self.safe.clone());
                self.n_done += 1;
            }
            Some("failed") => {
                self.plan = None;
                return Some(Some(line));
            }
            _ => {}
        }
        Some(None)
    }

    /// Reads all that it still said before it ended.
    pub(crate) fn finish(&mut self) {
        while self.read().is_some() {}
        self.child.wait().unwrap();
    }
}

/// How sessions stand after a plan.
pub(crate) fn after(safe: &Standing, plan: &Standing) -> Standing {
    let mut all = safe.clone();
    for (id, stands) in plan {
        if stands == "gone" {
            all.remove(id);
        } else {
            all.insert(id.clone(), stands.clone());
        }
    }
    all
}

/// How the sessions of a store stand. Everything in it must be sound and readable.
pub(crate) fn stands(store: &dyn Store) -> Standing {
    assert_eq!(faults(store), "");
    let mut all = Standing::new();
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
        all.insert(row.id.0.clone(), standing(&row));
    }
    all
}

/// What is wrong with a store. Bytes that only a deleted session named wait for a sweep, and are no fault.
pub(crate) fn faults(store: &dyn Store) -> String {
    let findings = store.check(CheckMode::Report).unwrap();
    let faults = findings.iter().filter(|finding| finding.location != "bytes");
    faults.map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
