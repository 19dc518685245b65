//! Every page of a store is lost once, the file is cut, and its header is overwritten: `doctor` saves the rest.

use std::collections::BTreeSet;
use std::path::Path;

use fanfold_store::{
    BlobId, CheckMode, NewMessage, Op, Relation, SessionFilter, SqliteStore, Store, open_to_check,
};
use fanfold_testkit::Rng;
use fanfold_testkit::generators::conversations::{ConversationSize, chat_messages, conversation};

use crate::shorthand::*;

const PAGE: usize = 4096;
const N_SESSIONS: u64 = 15;

/// A store of 15 sessions with the texts of its messages.
struct Sample {
    folder: tempfile::TempDir,
    bytes: Vec<u8>,
    messages: BTreeSet<String>,
}

/// The messages and sessions that can be read, out of those of a sample.
#[derive(Debug)]
struct Saved {
    share: f64,
    n_sessions: usize,
}

impl Sample {
    fn new() -> Sample {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("whole.db");
        let store = SqliteStore::open(&path).unwrap();
        for seed in 0..N_SESSIONS {
            add_session(&store, seed);
        }
        assert_eq!(n_found(&store, "nothing-with-this-name"), 0, "the search writes the index");
        let messages = all_messages(&store);
        drop(store);
        let bytes = std::fs::read(&path).unwrap();
        Sample { folder, bytes, messages }
    }

    fn n_pages(&self) -> usize {
        self.bytes.len() / PAGE
    }

    /// Repairs a damaged copy and reads it.
    fn repair(&self, bytes: &[u8], case: &str) -> Saved {
        let path = self.folder.path().join("x.db");
        for ending in ["", "-wal", "-shm", ".broken"] {
            let _ = std::fs::remove_file(format!("{}{ending}", path.display()));
        }
        std::fs::write(&path, bytes).unwrap();
        let store = open_to_check(path.to_str().unwrap(), CheckMode::Repair).unwrap();
        let findings = store.check(CheckMode::Repair).unwrap_or_else(|error| panic!("{case}: {error}"));
        let left: Vec<String> =
            store.check(CheckMode::Report).unwrap().iter().map(ToString::to_string).collect();
        let is_lasting = |text: &&String| !text.contains("of its events are missing");
        assert_eq!(left.iter().find(is_lasting), None, "{case}: {findings:#?}");
        drop(store);
        let store = SqliteStore::open(&path).unwrap();
        let read = all_messages(&store);
        let n_read = self.messages.intersection(&read).count();
        Saved { share: n_read as f64 / self.messages.len() as f64, n_sessions: sessions(&store).len() }
    }
}

/// Adds a session with a request per turn; every fifth session is a fork of its predecessor.
fn add_session(store: &dyn Store, seed: u64) {
    let name = format!("session-{seed}");
    let parent = format!("session-{}", seed.saturating_sub(1));
    match seed % 5 {
        4 => {
            let middle = chain(store, &parent).get(20).map(|node| node.id);
            write(store, vec![create_from(&name, Some((&parent, Relation::Fork)), middle)]);
        }
        _ => drop(write(store, vec![create(&name), title(&name, &format!("Title {seed}"))])),
    }
    let entries = conversation(700 + seed, ConversationSize::Long);
    let messages: Vec<String> = entries.iter().flat_map(chat_messages).map(|json| json.to_string()).collect();
    let own = |json: &String| json.replacen("{\"role\"", &format!("{{\"of\":{seed},\"role\""), 1);
    for turn in messages[..messages.len().min(40)].chunks(4) {
        let new = turn.iter().map(|json| NewMessage { json: own(json), at: None }).collect();
        let frame = format!("frame {seed} {}", turn.len());
        let body =
            format!("{{\"frame\":\"{}\",\"view\":\"{}\"}}", BlobId::new(frame.as_bytes()), "x".repeat(200));
        let ops =
            vec![Op::Append(id(&name), new), Op::PutBlob(frame.into_bytes()), note(&name, "request", &body)];
        write_at(store, 1_000 + seed as i64, ops).unwrap();
    }
}

fn sessions(store: &dyn Store) -> Vec<fanfold_store::SessionRow> {
    store.sessions(&SessionFilter::default()).unwrap()
}

/// The messages of all sessions.
fn all_messages(store: &dyn Store) -> BTreeSet<String> {
    let tips = sessions(store).into_iter().filter_map(|row| row.tip);
    let nodes = tips.flat_map(|tip| store.chain(tip, 0..u32::MAX).unwrap());
    nodes.map(|node| node.json.to_string()).collect()
}

/// The root pages of all tables and indexes, and the first page.
fn roots(path: &Path) -> BTreeSet<usize> {
    let file = rusqlite::Connection::open(path).unwrap();
    let mut all = file.prepare("SELECT rootpage FROM sqlite_schema WHERE rootpage > 0").unwrap();
    let roots = all.query_map([], |row| Ok(row.get::<_, u32>(0)? as usize)).unwrap();
    roots.map(Result::unwrap).chain([1]).collect()
}

fn fill_randomly(rng: &mut Rng, bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
}

#[test]
fn a_lost_page_costs_only_what_is_on_it() {
    let sample = Sample::new();
    let roots = roots(&sample.folder.path().join("whole.db"));
    let (n_pages, n_messages) = (sample.n_pages(), sample.messages.len());
    assert!(n_pages > 180 && n_messages > 450, "{n_pages} pages, {n_messages} messages");
    let mut rng = Rng::new(7);
    let is_thorough = std::env::var_os("FANFOLD_MANY").is_some();
    let mut shares = Vec::new();
    for page in 1..=n_pages {
        // A repair takes a while, so most pages are filled in one of both ways.
        for is_random in [false, true] {
            if !roots.contains(&page)
                && (!is_thorough && (!page.is_multiple_of(5) || is_random != page.is_multiple_of(2)))
            {
                continue;
            }
            let case = format!("page {page}, random: {is_random}");
            let mut bytes = sample.bytes.clone();
            let lost = &mut bytes[(page - 1) * PAGE..page * PAGE];
            if is_random {
                fill_randomly(&mut rng, lost);
            } else {
                lost.fill(0);
            }
            let saved = sample.repair(&bytes, &case);
            assert!(saved.share >= 0.9, "{case}: {saved:?}");
            assert_eq!(saved.n_sessions as u64, N_SESSIONS, "{case}");
            shares.push(saved.share);
        }
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean >= 0.97, "{mean}");
}

#[test]
fn a_cut_file_keeps_what_is_in_the_rest() {
    let sample = Sample::new();
    let n_pages = sample.n_pages();
    let mut last = 1.0;
    for n_left in [n_pages - 1, n_pages - 10, n_pages * 3 / 4, n_pages / 2] {
        for extra in [0, 1000] {
            let cut = &sample.bytes[..n_left * PAGE + extra];
            let expected = sample.messages.iter().filter(|json| contains(cut, json)).count();
            let case = format!("{n_left} of {n_pages} pages and {extra} bytes");
            let saved = sample.repair(cut, &case);
            let share = expected as f64 / sample.messages.len() as f64;
            assert!(
                saved.share >= share && saved.share <= last + 0.01,
                "{case}: {saved:?}, {share} is there"
            );
            last = saved.share;
        }
    }
    assert!(last > 0.2, "{last}");
}

/// Returns whether a message is in a file in one piece.
fn contains(file: &[u8], json: &str) -> bool {
    file.windows(json.len()).any(|bytes| bytes == json.as_bytes())
}

#[test]
fn a_damaged_header_costs_nothing() {
    let sample = Sample::new();
    let mut rng = Rng::new(3);
    // The whole header, each of its fields, and a few random ones.
    let mut ranges =
        vec![0..100, 0..16, 16..18, 18..24, 24..28, 28..32, 32..40, 40..44, 44..48, 56..60, 60..64];
    ranges.extend([68..72, 92..100]);
    for range in ranges {
        for fill in [Some(0), Some(0xff), None] {
            let mut bytes = sample.bytes.clone();
            let lost = &mut bytes[range.clone()];
            match fill {
                Some(byte) => lost.fill(byte),
                None => fill_randomly(&mut rng, lost),
            }
            let case = format!("bytes {range:?} are {fill:?}");
            let saved = sample.repair(&bytes, &case);
            assert!(saved.share == 1.0 && saved.n_sessions as u64 == N_SESSIONS, "{case}: {saved:?}");
        }
    }
}

#[test]
fn random_bytes_anywhere_never_abort_a_repair() {
    let sample = Sample::new();
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let mut bytes = sample.bytes.clone();
        for _ in 0..1 + rng.below(40) {
            let start = rng.below(bytes.len());
            let end = bytes.len().min(start + 1 + rng.below(300));
            fill_randomly(&mut rng, &mut bytes[start..end]);
        }
        let saved = sample.repair(&bytes, &format!("seed {seed}"));
        assert!(saved.share > 0.5, "seed {seed}: {saved:?}");
    }
}

#[test]
fn the_log_of_a_file_with_a_damaged_header_is_read() {
    let sample = Sample::new();
    // The log has the header in the first case only.
    for op in [append("session-1", &["only in the log"]), Op::SetNamedValue("x".into(), 7)] {
        let folder = tempfile::tempdir().unwrap();
        let (live, copy) = (folder.path().join("live.db"), folder.path().join("x.db"));
        std::fs::write(&live, &sample.bytes).unwrap();
        let store = SqliteStore::open(&live).unwrap();
        write(&store, vec![op.clone()]);
        // The files of a process that was killed.
        let mut bytes = std::fs::read(&live).unwrap();
        bytes[..100].fill(0);
        std::fs::write(&copy, bytes).unwrap();
        std::fs::copy(folder.path().join("live.db-wal"), folder.path().join("x.db-wal")).unwrap();
        let address = copy.to_str().unwrap();
        open_to_check(address, CheckMode::Repair).unwrap().check(CheckMode::Repair).unwrap();
        let store = SqliteStore::open(&copy).unwrap();
        match op {
            Op::SetNamedValue(name, value) => assert_eq!(store.named_value(&name).unwrap(), Some(value)),
            _ => assert_eq!(content(chain(&store, "session-1").last().unwrap()), "only in the log"),
        }
        assert!(folder.path().join("x.db.broken").exists());
    }
}

#[test]
fn other_files_are_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, mode| {
        open_to_check(folder.path().join(name).to_str().unwrap(), mode).unwrap().check(mode)
    };
    std::fs::write(folder.path().join("notes.txt"), "no database ".repeat(1_000)).unwrap();
    let other = rusqlite::Connection::open(folder.path().join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
    drop(other);
    for name in ["notes.txt", "other.db"] {
        let before = std::fs::read(folder.path().join(name)).unwrap();
        assert!(!check(name, CheckMode::Repair).is_ok_and(|findings| findings.is_empty()), "{name}");
        assert_eq!(std::fs::read(folder.path().join(name)).unwrap(), before, "{name}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn rows_of_free_pages_do_not_return() {
    let sample = Sample::new();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    std::fs::write(&path, &sample.bytes).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    write(&store, vec![Op::Delete(id("session-2"))]);
    store.collect_garbage().unwrap();
    let (expected, n_nodes) = (all_messages(&store), store.size().unwrap().n_nodes);
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'nodes'";
    let root = file.query_row(root, [], |row| row.get::<_, u32>(0)).unwrap() as usize;
    drop(file);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[(root - 1) * PAGE..root * PAGE].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    store.check(CheckMode::Repair).unwrap();
    assert_eq!(all_messages(&store), expected);
    assert_eq!(store.size().unwrap().n_nodes, n_nodes);
}
