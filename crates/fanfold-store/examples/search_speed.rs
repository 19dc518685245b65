//! Measures searches in a large store.
//!
//! ```text
//! cargo run --release -p fanfold-store --example search_speed -- generated 1000000 /tmp/speed
//! cargo run --release -p fanfold-store --example search_speed -- file transcript.json /tmp/speed
//! ```
//!
//! The first command generates messages whose words are distributed as in recorded sessions, and runs typical
//! queries of agents and users. The second loads the messages of one file into one session. An existing store is
//! reused.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "the measurements are the output, and errors may panic"
)]

use std::path::Path;
use std::time::{Duration, Instant};

use fanfold_store::search::{SearchRequest, Searcher};
use fanfold_store::{
    Batch, Millis, NewMessage, NewSession, Op, SessionFilter, SessionId, SqliteStore, Store,
};
use fanfold_testkit::Rng;
use serde_json::{Value, json};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [kind, what, folder] = args.as_slice() else { panic!("generated N FOLDER, or file PATH FOLDER") };
    std::fs::create_dir_all(folder).unwrap();
    let store = SqliteStore::open(Path::new(folder)).unwrap();
    let is_new =
        store.sessions(&SessionFilter { limit: Some(1), ..SessionFilter::default() }).unwrap().is_empty();
    let begun = Instant::now();
    match kind.as_str() {
        "generated" if is_new => generate(&store, what.parse().unwrap()),
        "file" if is_new => load(&store, what),
        _ => {}
    }
    println!("loaded and indexed in {:.1} s", begun.elapsed().as_secs_f64());
    let size = store.size().unwrap();
    println!(
        "{} messages in {} sessions, {:.1} MB of JSON, {:.1} MB on disk",
        size.n_nodes,
        size.n_sessions,
        size.n_json_bytes as f64 / 1e6,
        size.n_disk_bytes as f64 / 1e6
    );
    let queries = if kind == "file" { queries_of_file() } else { queries_of_vocabulary() };
    let mut all = (Vec::new(), Vec::new());
    println!("{:34}       wall-clock time, ms            processor time, ms", "");
    let head = ["p50", "p95", "max"].map(|name| format!("{name:>9}")).join(" ");
    println!("{:34} {head} {head}  results", "");
    for (name, requests) in queries {
        let mut times = Vec::new();
        let mut busy = Vec::new();
        let mut n_results = 0;
        let mut n_bounded = 0;
        for request in &requests {
            let (begun, busy_before) = (Instant::now(), processor_time());
            let reply = Searcher::new(&store).answer_json(request);
            let text = reply.to_string();
            times.push(begun.elapsed());
            busy.push(processor_time() - busy_before);
            assert!(!text.is_empty() && reply["success"] == true, "{reply}");
            n_results += reply["count"].as_u64().unwrap_or(1);
            n_bounded += usize::from(reply["bounded"] == true);
        }
        all.0.extend(times.iter().copied());
        all.1.extend(busy.iter().copied());
        let note = format!("{n_results} of {} queries, {n_bounded} bounded", requests.len());
        print(&name, &mut times, &mut busy, &note);
    }
    print("all of them", &mut all.0, &mut all.1, "");
}

fn print(name: &str, times: &mut [Duration], busy: &mut [Duration], note: &str) {
    let figures = |times: &mut [Duration]| {
        times.sort();
        let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
        [0.5, 0.95, 1.0].map(|share| format!("{:9.2}", at(share))).join(" ")
    };
    println!("{name:34} {} {}  {note}", figures(times), figures(busy));
}

/// Returns the processor time of this thread, which does not depend on the load of the machine. Only available on
/// Linux.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(first.unwrap_or(0))
}

fn append(store: &SqliteStore, session: &str, at: i64, messages: Vec<String>) {
    let id = SessionId(session.to_owned());
    let mut ops = Vec::new();
    if store.session(&id).unwrap().is_none() {
        let (source, format) = ("cli".to_owned(), "openai".to_owned());
        ops.push(Op::Create(NewSession { id: id.clone(), source, format, parent: None, tip: None }));
    }
    let messages = messages.into_iter().map(|json| NewMessage { json, at: None }).collect();
    ops.push(Op::Append(id, messages));
    store.commit(&Batch { at: Millis(at), expected_tips: Vec::new(), ops }).unwrap();
}

fn load(store: &SqliteStore, path: &str) {
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for (i, messages) in file["messages"].as_array().unwrap().chunks(100).enumerate() {
        append(store, "loaded", i as i64, messages.iter().map(Value::to_string).collect());
    }
    Searcher::new(store).answer_json(&ask("first"));
}

fn generate(store: &SqliteStore, n_messages: usize) {
    let mut rng = Rng::new(1);
    let mut n_made = 0;
    let mut session = 0;
    while n_made < n_messages {
        // Several sessions continue concurrently.
        let name = format!("session-{}", session - session.min(rng.below(8)));
        session += usize::from(rng.percent(25));
        let n = 40.min(n_messages - n_made);
        let messages = (0..n).map(|i| message(&mut rng, n_made + i)).collect();
        append(store, &name, 1_700_000_000_000 + 1_000 * n_made as i64, messages);
        n_made += n;
    }
    Searcher::new(store).answer_json(&ask("first"));
}

/// Generates a message: half of them are tool results, a third are tool calls, and the rest are texts.
fn message(rng: &mut Rng, i: usize) -> String {
    let kind = rng.below(100);
    match kind {
        0..50 => {
            let n = 30 + rng.below(30) * rng.below(12);
            json!({ "role": "tool", "tool_call_id": format!("call_{i}"), "content": text(rng, n) })
        }
        50..80 => {
            let path = path(rng);
            let arguments = json!({ "path": path, "pattern": word(rng) }).to_string();
            let function = json!({ "name": rng.pick(&["read_file", "terminal", "search_files"]), "arguments": arguments });
            let n = rng.below(20);
            json!({ "role": "assistant", "content": text(rng, n), "tool_calls": [
                { "id": format!("call_{i}"), "type": "function", "function": function }] })
        }
        80..92 => {
            let n = 20 + rng.below(120);
            json!({ "role": "assistant", "content": text(rng, n) })
        }
        _ => {
            let n = 5 + rng.below(40);
            json!({ "role": "user", "content": text(rng, n) })
        }
    }
    .to_string()
}

fn text(rng: &mut Rng, n_words: usize) -> String {
    let mut text = String::new();
    for i in 0..n_words {
        match rng.below(40) {
            0 => text.push_str(&path(rng)),
            1 => text.push_str(&format!("{}_{}", word(rng), word(rng))),
            2 => text.push_str(&rng.below(100_000).to_string()),
            // A unique id.
            3 if rng.percent(10) => text.push_str(&format!("{:016x}", rng.number())),
            4 if rng.percent(5) => text.push_str("日本語の検索"),
            _ => text.push_str(&word(rng)),
        }
        text.push(if i % 12 == 11 { '\n' } else { ' ' });
    }
    text
}

fn path(rng: &mut Rng) -> String {
    format!("src/{}/{}_{}.rs", word(rng), word(rng), word(rng))
}

/// Generates a word by its frequency rank: the first words are in almost every text, the last in a few of a million.
fn word(rng: &mut Rng) -> String {
    // Zipf's law: each doubling of the rank covers an equal share of the words.
    let share = (rng.number() >> 11) as f64 / (1_u64 << 53) as f64;
    spell((60_000_f64.powf(share)) as usize)
}

/// Returns a pronounceable word for a rank.
fn spell(rank: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "ka", "ter", "lo", "mi", "ser", "pan", "du", "re", "con", "fi", "lam", "ne", "tor", "ing", "pre",
        "su",
    ];
    let mut word = String::new();
    let mut rest = rank;
    loop {
        word.push_str(SYLLABLES[rest % 16]);
        rest /= 16;
        if rest == 0 {
            return word;
        }
    }
}

fn ask(query: &str) -> SearchRequest {
    SearchRequest { query: Some(query.to_owned()), ..SearchRequest::default() }
}

fn queries_of_file() -> Vec<(String, Vec<SearchRequest>)> {
    let many = |query: &str| vec![ask(query); 200];
    vec![
        ("broad: compact archive".into(), many("compact archive")),
        ("broad: compact".into(), many("compact")),
        ("rare phrase: \"lineage parent\"".into(), many("\"lineage parent\"")),
        ("part: *ompac*".into(), many("*ompac*")),
        ("prefix: comp*".into(), many("comp*")),
    ]
}

fn queries_of_vocabulary() -> Vec<(String, Vec<SearchRequest>)> {
    let mut rng = Rng::new(7);
    let mut make = |name: &str, n: usize, query: &dyn Fn(&mut Rng) -> SearchRequest| {
        (name.to_owned(), (0..n).map(|_| query(&mut rng)).collect::<Vec<_>>())
    };
    let between = |rng: &mut Rng, low: usize, high: usize| spell(low + rng.below(high - low));
    vec![
        make("two words", 200, &|rng| ask(&format!("{} {}", word(rng), word(rng)))),
        make("three words", 200, &|rng| ask(&format!("{} {} {}", word(rng), word(rng), word(rng)))),
        make("one word", 200, &|rng| ask(&word(rng))),
        make("one of the 50 most common", 50, &|rng| ask(&between(rng, 1, 50))),
        make("two of the 50 most common", 50, &|rng| {
            ask(&format!("{} {}", between(rng, 1, 50), between(rng, 1, 50)))
        }),
        make("four of the 50 most common", 50, &|rng| {
            let words: Vec<String> = (0..4).map(|_| between(rng, 1, 50)).collect();
            ask(&words.join(" "))
        }),
        make("rare word", 100, &|rng| ask(&between(rng, 30_000, 59_000))),
        make("path", 100, &|rng| ask(&path(rng))),
        make("phrase of two", 100, &|rng| ask(&format!("\"{} {}\"", word(rng), word(rng)))),
        make("phrase of two common words", 50, &|rng| {
            ask(&format!("\"{} {}\"", between(rng, 1, 50), between(rng, 1, 50)))
        }),
        make("one OR another", 100, &|rng| ask(&format!("{} OR {}", word(rng), word(rng)))),
        make("one NOT another", 100, &|rng| ask(&format!("{} NOT {}", word(rng), word(rng)))),
        make("prefix", 100, &|rng| ask(&format!("{}*", between(rng, 256, 4_096)))),
        make("short prefix", 50, &|rng| ask(&format!("{}*", &spell(rng.below(16))[..2]))),
        make("part of a word", 100, &|rng| ask(&format!("*{}*", &between(rng, 4_096, 59_000)[1..6]))),
        make("CJK", 50, &|_| ask("日本語")),
        make("by the user", 100, &|rng| SearchRequest {
            role_filter: Some("user".into()),
            ..ask(&word(rng))
        }),
        make("in one session", 100, &|rng| SearchRequest {
            session_id: Some(format!("session-{}", rng.below(100))),
            ..ask(&word(rng))
        }),
        make("newest", 100, &|rng| SearchRequest {
            sort: Some(fanfold_store::search::DateOrder::Newest),
            ..ask(&format!("{} {}", word(rng), word(rng)))
        }),
        make("browse", 50, &|_| SearchRequest::default()),
    ]
}
