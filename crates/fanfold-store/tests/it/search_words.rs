//! Every word of a stored message finds it: by itself, by its beginning and by its parts.

use std::collections::BTreeSet;

use fanfold_store::search::{Query, SearchSpec, message_text, words};
use fanfold_store::{Millis, NewMessage, Node, Op, SqliteStore, Store};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::shorthand::{create, id, write};

/// The messages among which a message is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchScope {
    /// All messages, page by page. This is slow for common words in large stores.
    All,
    /// Only messages with the same time, which is the message alone.
    SameTime,
}

/// Returns whether a query finds a message.
fn finds(store: &dyn Store, query: &str, node: &Node, scope: SearchScope) -> bool {
    let mut find = SearchSpec { query: Query::parse(query), limit: 50, ..SearchSpec::default() };
    if scope == SearchScope::SameTime {
        (find.since, find.before) = (Some(node.at), Some(Millis(node.at.0 + 1)));
    }
    loop {
        let hits = store.search(&find).unwrap();
        // A part that is in too many words may miss the message, but this is reported.
        let is_truncated = hits.is_bounded && query.starts_with('*');
        if is_truncated || hits.hits.iter().any(|found| found.node.number == node.number) {
            return true;
        }
        if hits.hits.len() < find.limit {
            return false;
        }
        find.offset += find.limit;
    }
}

/// A message and a text that it contains.
struct TextMessage {
    json: String,
    text: String,
}

/// Stores messages at different times with `writer`, and searches each with `reader` by some words of its text; every
/// `every`th one among all messages. Returns the number of checked words.
fn check(
    (writer, reader): (&dyn Store, &dyn Store),
    messages: &[TextMessage],
    pick: &mut dyn FnMut(usize) -> usize,
    (n_words, every): (usize, usize),
) -> usize {
    let new =
        |(message, at): (&TextMessage, i64)| NewMessage { json: message.json.clone(), at: Some(Millis(at)) };
    write(writer, vec![create("a"), Op::Append(id("a"), messages.iter().zip(1..).map(new).collect())]);
    let nodes = writer.chain(writer.session(&id("a")).unwrap().unwrap().tip.unwrap(), 0..u32::MAX).unwrap();
    let mut n_checked = 0;
    for (node, message) in nodes.into_iter().zip(messages) {
        let text_words = words(&message.text);
        if text_words.is_empty() {
            continue;
        }
        let scope = if (node.depth as usize).is_multiple_of(every) {
            SearchScope::All
        } else {
            SearchScope::SameTime
        };
        let picked: BTreeSet<usize> = (0..n_words).map(|_| pick(text_words.len())).collect();
        for i in picked {
            n_checked += 1;
            let word = &text_words[i];
            let look = |query: String| {
                assert!(finds(reader, &query, &node, scope), "{query:?} does not find {}", node.json);
            };
            look(word.clone());
            // A few letters change when they are converted to upper case and back.
            if words(&word.to_uppercase()) == [word.as_str()] {
                look(word.to_uppercase());
            }
            let letters: Vec<char> = word.chars().collect();
            if letters.len() >= 3 {
                look(letters[..letters.len() - 1].iter().collect::<String>() + "*");
                let start = pick(letters.len() - 2);
                let len = 3 + pick(letters.len() - start - 2);
                look(format!("*{}*", letters[start..start + len].iter().collect::<String>()));
            }
            let phrase = text_words[i..text_words.len().min(i + 3)].join(" ");
            look(format!("\"{phrase}\""));
            look(format!("{word} {}", text_words[pick(text_words.len())]));
        }
    }
    n_checked
}

/// Generates texts in many scripts, and identifiers, paths, numbers and operators.
fn text() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        "[a-zA-Z]{1,12}",
        "[a-z]{1,6}_[a-z]{1,6}",
        "[a-z]{1,5}/[a-z]{1,5}\\.[a-z]{1,3}",
        "[0-9]{1,6}(\\.[0-9]{1,3})?",
        "[0-9a-f]{40}",
        "[àéîõüßçñĄłšŽø]{1,8}",
        "[а-яА-ЯёЁ]{1,10}",
        "[α-ωΑ-Ωάς]{1,8}",
        "[一-龥]{1,6}",
        "[ぁ-んァ-ヴ]{1,6}",
        "[가-힣]{1,5}",
        "[א-ת]{1,7}",
        "[ء-ي]{1,7}",
        "[अ-ह]{1,6}",
        "[ก-ฮ]{1,6}",
        "\\PC{1,10}",
        "--[a-z]{1,6}=\"[a-z ]{1,8}\"",
        "AND|OR|NOT|NEAR",
    ];
    proptest::collection::vec(words, 1..12).prop_map(|words| words.join(" "))
}

/// A placeholder for half of a surrogate pair; generated texts do not contain it.
const CUT: char = '\u{e000}';

fn message(text: &str, kind: u8) -> String {
    let parts = json!([{ "type": "text", "text": text }]);
    let call = |arguments: Value| {
        let function = json!({ "name": "write_file", "arguments": arguments.to_string() });
        json!({ "role": "assistant", "content": null, "tool_calls": [{ "id": "c1", "function": function }] })
    };
    let document = json!({ "type": "text", "media_type": "text/plain", "data": text });
    let json = match kind % 7 {
        0 => json!({ "role": "user", "content": text }),
        1 => json!({ "role": "tool", "tool_call_id": "c1", "content": parts }),
        2 => call(json!({ "path": text, "n": 7 })),
        3 => json!({ "role": "assistant", "content": [
            { "type": "tool_use", "id": "t", "name": "grep", "input": { "pattern": [text] } }] }),
        4 => json!({ "role": "user", "content": [{ "type": "document", "source": document }] }),
        // A text cut in the middle of a character ends with half of a surrogate pair.
        5 => json!({ "role": "tool", "tool_call_id": "c1", "content": format!("first\n{text} {CUT}") }),
        _ => call(json!({ "text": format!("{text} {CUT}") })),
    };
    let json = json.to_string();
    match kind % 7 {
        5 => json.replace(CUT, "\\ud83d"),
        6 => json.replace(CUT, "\\\\ud83d"),
        _ => json,
    }
}

fn is_long() -> bool {
    std::env::var_os("FANFOLD_MANY").is_some()
}

fn check_generated(with_stores: impl Fn(&mut dyn FnMut(&dyn Store, &dyn Store))) {
    let cases = if is_long() { 100 } else { 4 };
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let messages = proptest::collection::vec((text(), any::<u8>()), 1..30);
    TestRunner::new(config)
        .run(&(messages, any::<prop::sample::Index>()), |(messages, index)| {
            let generated =
                |(text, kind): &(String, u8)| TextMessage { json: message(text, *kind), text: text.clone() };
            let messages: Vec<TextMessage> = messages.iter().map(generated).collect();
            let mut turn = index.index(1_000_003);
            let mut pick = |n: usize| {
                turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (turn >> 33) % n
            };
            with_stores(&mut |writer, reader| {
                check((writer, reader), &messages, &mut pick, (6, 1));
            });
            Ok(())
        })
        .unwrap();
}

/// Searches words of recorded messages; of `n_long` messages in a long run.
fn check_recorded(store: &dyn Store, n_long: usize) {
    let Some(recorded) = fanfold_testkit::trajectories::trajectories() else { return };
    let (n_messages, n_words) = if is_long() { (n_long, 3) } else { (150, 2) };
    let step = (recorded.iter().map(|one| one.messages.len()).sum::<usize>() / n_messages).max(1);
    let messages = recorded.iter().flat_map(|one| &one.messages).step_by(step).take(n_messages);
    // There is no independent source for the text of recorded messages.
    let recorded_text = |json: &str| TextMessage { text: message_text(json), json: json.to_owned() };
    let messages: Vec<TextMessage> = messages.map(|message| recorded_text(message.get())).collect();
    let mut turn = 1_usize;
    let mut pick = |n: usize| {
        turn = turn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (turn >> 33) % n
    };
    let start = std::time::Instant::now();
    // Search about a hundred of them among all messages.
    let every = messages.len().div_ceil(100);
    let n_checked = check((store, store), &messages, &mut pick, (n_words, every));
    eprintln!("{n_checked} words of {} recorded messages in {:.1?}", messages.len(), start.elapsed());
}

#[test]
fn every_word_of_a_generated_message_finds_it_before_it_is_indexed() {
    check_generated(|check| {
        let folder = tempfile::tempdir().unwrap();
        let writer = SqliteStore::open(folder.path()).unwrap();
        check(&writer, &SqliteStore::open_read_only(folder.path()).unwrap());
    });
}

#[test]
fn every_word_of_a_generated_message_finds_it_in_sqlite() {
    check_generated(|check| {
        let store = SqliteStore::in_memory();
        check(&store, &store);
    });
}

#[test]
fn every_word_of_a_recorded_message_finds_it_in_sqlite() {
    check_recorded(&SqliteStore::in_memory(), 5_000);
}

#[test]
fn every_word_of_a_generated_message_finds_it_in_postgres() {
    let Some(database) = crate::cluster::database() else { return };
    check_generated(|check| {
        crate::postgres::drop_store(&database);
        let store = crate::cluster::open(&database);
        check(&*store, &*store);
    });
}

#[test]
fn every_word_of_a_recorded_message_finds_it_in_postgres() {
    let Some(database) = crate::cluster::database() else { return };
    check_recorded(&*crate::cluster::open(&database), 1_000);
}
