//! Measures a SQLite store: committing each step of a conversation, a fork, a fold, reading, search, and the file
//! size.
//!
//! `cargo bench -p fanfold-store --bench store -- FILE...` prints one line of JSON per transcript file, in the
//! format of `../shared/tools/gen_transcripts.py`. `cargo xtask bench store` compares the results with Hermes.
//! `--million N` fills a store with N messages and compares appending to it with appending to a small store.
//! `--turns FILE` only appends, with one commit per turn, for use with `perf` or `strace`.

#![allow(clippy::print_stdout, reason = "the measurements are the data")]
#![allow(clippy::unwrap_used, reason = "a benchmark may fail")]

use std::path::Path;
use std::time::{Duration, Instant};

use fanfold_store::search::{SearchRequest, Searcher};
use fanfold_store::{
    Batch, BlobId, Millis, NewEvent, NewMessage, NewSession, NodeId, Op, Relation, SessionId, SqliteStore,
    Store,
};
use serde_json::Value;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.split_first() {
        Some((option, rest)) if option == "--million" => {
            println!("{}", million(rest.first().and_then(|n| n.parse().ok()).unwrap_or(1_000_000)));
        }
        Some((option, rest)) if option == "--turns" => rest.iter().for_each(|file| {
            let text = std::fs::read_to_string(file).unwrap();
            let turns = grouped(&messages(&text), |role| role == "user");
            println!("{} turns in {:.1?}", turns.len(), append_all(&turns));
        }),
        Some(_) => arguments.iter().for_each(|file| println!("{}", measure(file))),
        None => eprintln!("no files to measure; see `cargo xtask bench store`"),
    }
}

fn measure(file: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let messages = messages(&text);
    let steps = grouped(&messages, |role| role != "tool");
    // Commit each message, as Hermes does; each step, as the engine does; each turn.
    let sync = sync();
    let each = append_all(&grouped(&messages, |_| true));
    let turn = append_all(&grouped(&messages, |role| role == "user"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    let append = append_to(&store, &steps);
    let tip = store.session(&id("s")).unwrap().unwrap().tip.unwrap();
    let search = Searcher::new(&store);
    let answer = |query: &str| {
        let request = SearchRequest { query: Some(query.to_owned()), ..SearchRequest::default() };
        let reply = search.answer_json(&request);
        assert!(reply["count"].as_i64() > Some(0), "no results: {reply}");
    };
    // The first search indexes all messages.
    let index = median(1, |_| answer("compact archive"));
    let broad = median(9, |_| answer("compact archive"));
    let rare = median(9, |_| answer("\"lineage parent\""));
    let load = median(9, |_| drop(store.chain(tip, 0..u32::MAX).unwrap()));
    drop(store);
    let n_loaded = std::fs::metadata(&path).unwrap().len();
    let store = SqliteStore::open(&path).unwrap();
    let start = Instant::now();
    create(&store, "fork", Some(tip));
    let first_fork = start.elapsed();
    let mut folds: Vec<Duration> = (0..4).map(|i| fold(&store, i)).collect();
    folds.sort();
    drop(store);
    let n_folded = std::fs::metadata(&path).unwrap().len();
    let store = SqliteStore::open(&path).unwrap();
    let fork = median(21, |i| create(&store, &format!("f{i}"), Some(tip))).min(first_fork);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!(
        "{{\"messages\":{},\"commits\":{},\"json_bytes\":{},\"sync_ms\":{:.3},\"each_ms\":{:.3},\"append_ms\":{:.3},\"turn_ms\":{:.3},\
         \"index_ms\":{:.3},\"broad_ms\":{:.3},\
         \"rare_ms\":{:.3},\"load_ms\":{:.3},\"fork_ms\":{:.4},\
         \"fold_ms\":{:.4},\"loaded_bytes\":{n_loaded},\"folded_bytes\":{n_folded}}}",
        messages.len(),
        steps.len(),
        text.len(),
        ms(sync),
        ms(each),
        ms(append),
        ms(turn),
        ms(index),
        ms(broad),
        ms(rare),
        ms(load),
        ms(fork),
        ms(folds[folds.len() / 2]),
    )
}

/// The median time to sync 16 kB to the disk, a lower bound for a durable commit.
fn sync() -> Duration {
    use std::io::{Seek as _, Write as _};
    let mut file = tempfile::tempfile().unwrap();
    median(201, |_| {
        file.rewind().unwrap();
        file.write_all(&[7; 16_384]).unwrap();
        file.sync_data().unwrap();
    })
}

/// A message and its role.
type MessageWithRole = (NewMessage, String);

fn messages(text: &str) -> Vec<MessageWithRole> {
    let file: Value = serde_json::from_str(text).unwrap();
    let new = |message: &Value| {
        let role = message["role"].as_str().unwrap_or_default().to_owned();
        (NewMessage { json: message.to_string(), at: None }, role)
    };
    file["messages"].as_array().unwrap().iter().map(new).collect()
}

/// Groups messages into batches; `begins` selects the roles that start a batch.
fn grouped(messages: &[MessageWithRole], begins: impl Fn(&str) -> bool) -> Vec<Vec<NewMessage>> {
    let mut batches: Vec<Vec<NewMessage>> = Vec::new();
    for (message, role) in messages {
        match batches.last_mut() {
            Some(batch) if !begins(role) => batch.push(message.clone()),
            _ => batches.push(vec![message.clone()]),
        }
    }
    batches
}

/// Appends batches to a new store with one synced commit each.
fn append_all(batches: &[Vec<NewMessage>]) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    append_to(&SqliteStore::open(&folder.path().join("sessions.db")).unwrap(), batches)
}

fn append_to(store: &dyn Store, batches: &[Vec<NewMessage>]) -> Duration {
    create(store, "s", None);
    let batches: Vec<Batch> = batches
        .iter()
        .map(|batch| Batch {
            at: Millis(1),
            expected_tips: Vec::new(),
            ops: vec![Op::Append(id("s"), batch.clone())],
        })
        .collect();
    let start = Instant::now();
    for batch in &batches {
        store.commit(batch).unwrap();
    }
    start.elapsed()
}

fn id(name: &str) -> SessionId {
    SessionId(name.to_owned())
}

fn commit(store: &dyn Store, ops: Vec<Op>) {
    store.commit(&Batch { at: Millis(1), expected_tips: Vec::new(), ops }).unwrap();
}

fn create(store: &dyn Store, name: &str, tip: Option<NodeId>) {
    let parent = tip.map(|_| (id("s"), Relation::Fork));
    let new = NewSession { id: id(name), source: "cli".into(), format: "openai".into(), parent, tip };
    commit(store, vec![Op::Create(new)]);
}

/// Commits a fold: an event with a hundred stubs, and the blob of a request body.
fn fold(store: &dyn Store, i: usize) -> Duration {
    let stub = |n: usize| {
        format!("{{\"place\":{n},\"stub\":\"[{n:06x}] {}\"}}", "a line of what was there ".repeat(8))
    };
    let stubs: Vec<String> = (0..100).map(|n| stub(n + 1000 * i)).collect();
    let kept =
        format!("{{\"model\":\"m{i}\",\"tools\":\"{}\"}}", "a tool and its schema ".repeat(500)).into_bytes();
    let body = format!("{{\"body\":\"{}\",\"folds\":[{}]}}", BlobId::new(&kept), stubs.join(","));
    let start = Instant::now();
    commit(store, vec![Op::PutBlob(kept), Op::AddEvent(id("s"), NewEvent { kind: "fold".into(), body })]);
    start.elapsed()
}

fn median(n: usize, mut work: impl FnMut(usize)) -> Duration {
    let mut times: Vec<Duration> = (0..n)
        .map(|i| {
            let start = Instant::now();
            work(i);
            start.elapsed()
        })
        .collect();
    times.sort();
    times[n / 2]
}

/// Fills a store with sessions of 200 messages, then measures appending a step to it and to a small store.
fn million(n_messages: usize) -> String {
    let folder = tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let store = SqliteStore::open(&folder.path().join("sessions.db")).unwrap();
    create(&store, "s", None);
    let mut n = 0;
    let mut fill = |until: usize| {
        let start = Instant::now();
        while n < until {
            let name = format!("session {n}");
            create(&store, &name, None);
            let messages = (0..200).map(|i| message(n + i)).collect();
            commit(&store, vec![Op::Append(id(&name), messages)]);
            n += 200;
        }
        start.elapsed()
    };
    let filled = fill(n_messages);
    // Alternate with a store of a thousand messages, because the speed of the disk varies over time.
    let small = SqliteStore::open(&folder.path().join("small.db")).unwrap();
    create(&small, "s", None);
    commit(&small, vec![Op::Append(id("s"), (0..1_000).map(message).collect())]);
    let (mut few, mut many) = (Duration::ZERO, Duration::ZERO);
    let n_rounds = 10;
    for round in 0..n_rounds {
        few += steps_per(&small, 1_000 * round) / n_rounds as u32;
        many += steps_per(&store, 10_000_000 + 1_000 * round) / n_rounds as u32;
    }
    let size = store.size().unwrap();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!(
        "{{\"messages\":{},\"few_ms\":{:.4},\"many_ms\":{:.4},\"fill_s\":{:.1},\"json_bytes\":{},\"disk_bytes\":{}}}",
        size.n_nodes,
        ms(few),
        ms(many),
        filled.as_secs_f64(),
        size.n_json_bytes,
        size.n_disk_bytes
    )
}

/// Returns the mean time to commit a step of two messages. The mean includes checkpoints.
fn steps_per(store: &dyn Store, from: usize) -> Duration {
    let n_steps = 100;
    let start = Instant::now();
    for i in 0..n_steps {
        let messages = vec![message(from + 2 * i), message(from + 2 * i + 1)];
        commit(store, vec![Op::Append(id("s"), messages)]);
    }
    start.elapsed() / n_steps as u32
}

/// Generates a message of some hundred characters with a few rare words.
fn message(n: usize) -> NewMessage {
    let words = [
        "error", "build", "request", "session", "parser", "value", "result", "config", "thread", "buffer",
        "index", "query", "commit", "branch", "module", "import", "export", "stream", "socket", "window",
    ];
    let mut seed = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut draw = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed as usize % below
    };
    let mut text = format!("message {n} of file_{}.rs:", draw(50_000));
    for _ in 0..40 + draw(40) {
        let word = words[draw(words.len()).min(draw(words.len()))];
        text.push(' ');
        text.push_str(word);
        if draw(12) == 0 {
            text.push_str(&format!(" name{}", draw(200_000)));
        }
    }
    let role = if n.is_multiple_of(2) { "assistant" } else { "tool" };
    NewMessage { json: format!("{{\"role\":\"{role}\",\"content\":\"{text}\"}}"), at: Some(Millis(n as i64)) }
}
