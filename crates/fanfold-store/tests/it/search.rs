//! The hits of a search and their visibility, in every store.

use fanfold_store::search::{HitOrder, LiveMessages, Query, SearchSpec};
use fanfold_store::{EndReason, Millis, NewMessage, NewSession, Op, Relation, Role, SessionUpdate, Store};

use crate::shorthand::*;

every_store! {
    finds_words_phrases_prefixes_and_parts,
    finds_characters_of_scripts_without_spaces,
    finds_alternatives_and_exclusions,
    best_hit_comes_first,
    hits_are_sorted_by_date,
    pages_are_consecutive,
    filters_are_applied,
    hostile_queries_are_harmless,
    new_messages_are_found_at_once,
    rewound_messages_are_hidden,
    redone_messages_are_found_again,
    forks_are_separate_results,
    shared_message_is_found_once,
    rotations_are_one_lineage,
    deleted_sessions_are_hidden,
    live_messages_are_left_out,
    live_messages_of_a_fork_are_left_out,
    long_messages_are_indexed_completely,
    malformed_messages_are_searchable,
    common_words_find_all_messages,
    truncated_expansions_are_reported,
}

/// Appends a message at a time.
pub(crate) fn say(store: &dyn Store, name: &str, at: i64, role: &str, text: &str) {
    let json = serde_json::json!({ "role": role, "content": text }).to_string();
    let message = NewMessage { json, at: None };
    write_at(store, at, vec![Op::Append(id(name), vec![message])]).unwrap();
}

/// Creates a session with a source at a time.
pub(crate) fn begin(store: &dyn Store, name: &str, at: i64, source: &str) {
    let (source, format) = (source.to_owned(), "openai".to_owned());
    let new = NewSession { id: id(name), source, format, parent: None, tip: None };
    write_at(store, at, vec![Op::Create(new)]).unwrap();
}

fn all(query: &str) -> SearchSpec {
    SearchSpec { query: Query::parse(query), limit: 100, ..SearchSpec::default() }
}

/// Returns the hits in order, as session and text.
fn found(store: &dyn Store, find: &SearchSpec) -> Vec<String> {
    let hits = store.search(find).unwrap();
    hits.hits.iter().map(|found| format!("{}: {}", found.session.id, content(&found.node))).collect()
}

/// Returns the texts of the hits, sorted.
fn texts(store: &dyn Store, find: &SearchSpec) -> Vec<String> {
    let mut texts: Vec<String> =
        store.search(find).unwrap().hits.iter().map(|found| content(&found.node)).collect();
    texts.sort();
    texts
}

fn check(store: &dyn Store, query: &str, expected: &[&str]) {
    assert_eq!(texts(store, &all(query)), expected, "{query}");
}

fn finds_words_phrases_prefixes_and_parts(store: &dyn Store) {
    let messages = ["The parser failed", "failed parser", "see src/parser/main.rs", "max_retries is parsing"];
    write(store, vec![create("a"), append("a", &messages)]);
    check(store, "PARSER", &["The parser failed", "failed parser", "see src/parser/main.rs"]);
    check(store, "parser failed", &["The parser failed", "failed parser"]);
    check(store, "\"parser failed\"", &["The parser failed"]);
    check(store, "parser/main.rs", &["see src/parser/main.rs"]);
    check(store, "max_retries", &["max_retries is parsing"]);
    check(
        store,
        "pars*",
        &["The parser failed", "failed parser", "max_retries is parsing", "see src/parser/main.rs"],
    );
    check(store, "\"the pars\"*", &["The parser failed"]);
    check(store, "*etri*", &["max_retries is parsing"]);
    check(store, "*arsi* *trie*", &["max_retries is parsing"]);
    check(store, "*rser/mai*", &["see src/parser/main.rs"]);
    check(store, "*tries*", &["max_retries is parsing"]);
    check(store, "pars", &[]);
    check(store, "main parser", &["see src/parser/main.rs"]);
    check(store, "", &[]);
}

fn finds_characters_of_scripts_without_spaces(store: &dyn Store) {
    write(
        store,
        vec![create("a"), append("a", &["私は日本語を話す", "本日は晴天", "한국어 검색", "Привет, мир"])],
    );
    check(store, "日", &["本日は晴天", "私は日本語を話す"]);
    check(store, "日本", &["私は日本語を話す"]);
    check(store, "本日", &["本日は晴天"]);
    check(store, "日本語 話", &["私は日本語を話す"]);
    check(store, "국어", &["한국어 검색"]);
    check(store, "МИР", &["Привет, мир"]);
    check(store, "при*", &["Привет, мир"]);
    check(store, "*иве*", &["Привет, мир"]);
}

fn finds_alternatives_and_exclusions(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["red green", "green blue", "blue red", "plain"])]);
    check(store, "red OR blue", &["blue red", "green blue", "red green"]);
    check(store, "red NOT green", &["blue red"]);
    check(store, "green NOT red OR plain", &["green blue", "plain"]);
    check(store, "green NOT *lain*", &["green blue", "red green"]);
    check(store, "red or blue", &[]);
}

fn best_hit_comes_first(store: &dyn Store) {
    let filler = "and so on ".repeat(50);
    let long = format!("{filler} needle {filler}");
    write(
        store,
        vec![create("a"), append("a", &[&long, "needle needle needle", "no more", "a b c", "d e f"])],
    );
    let hits = store.search(&all("needle")).unwrap();
    assert_eq!(content(&hits.hits[0].node), "needle needle needle");
    assert_eq!(hits.hits.len(), 2);
    assert!(hits.hits[0].score > hits.hits[1].score);
}

fn hits_are_sorted_by_date(store: &dyn Store) {
    begin(store, "a", 1, "test");
    for (at, text) in [(10, "word one"), (30, "word word word"), (20, "word three three")] {
        say(store, "a", at, "user", text);
    }
    let find = |order| SearchSpec { order, ..all("word") };
    assert_eq!(
        found(store, &find(HitOrder::Newest)),
        ["a: word word word", "a: word three three", "a: word one"]
    );
    assert_eq!(
        found(store, &find(HitOrder::Oldest)),
        ["a: word one", "a: word three three", "a: word word word"]
    );
}

fn pages_are_consecutive(store: &dyn Store) {
    let messages: Vec<String> = (0..25).map(|i| format!("page {i} word")).collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    write(store, vec![create("a"), append("a", &messages)]);
    for order in [HitOrder::Best, HitOrder::Newest, HitOrder::Oldest] {
        let mut paged = Vec::new();
        for offset in [0, 10, 20] {
            paged.extend(found(store, &SearchSpec { limit: 10, offset, order, ..all("word") }));
        }
        assert_eq!(paged, found(store, &SearchSpec { order, ..all("word") }));
        assert_eq!(paged.len(), 25);
    }
    assert!(store.search(&SearchSpec { limit: 0, ..all("word") }).unwrap().hits.is_empty());
}

fn filters_are_applied(store: &dyn Store) {
    begin(store, "a", 1, "cli");
    begin(store, "b", 2, "subagent");
    say(store, "a", 10, "user", "word by user");
    say(store, "a", 20, "assistant", "word by model");
    say(store, "a", 30, "tool", "word by tool");
    say(store, "b", 40, "user", "word by other");
    let with = |change: &dyn Fn(&mut SearchSpec)| {
        let mut find = all("word");
        change(&mut find);
        texts(store, &find)
    };
    assert_eq!(with(&|find| find.roles = vec![Role::User]), ["word by other", "word by user"]);
    assert_eq!(
        with(&|find| find.roles = vec![Role::Tool, Role::Assistant]),
        ["word by model", "word by tool"]
    );
    assert_eq!(with(&|find| find.sources = vec!["subagent".into()]), ["word by other"]);
    let others = with(&|find| find.excluded_sources = vec!["subagent".into()]);
    assert_eq!(others, ["word by model", "word by tool", "word by user"]);
    assert_eq!(with(&|find| find.session = Some(id("b"))), ["word by other"]);
    assert_eq!(with(&|find| find.session = Some(id("none"))), [""; 0]);
    assert_eq!(with(&|find| find.since = Some(Millis(30))), ["word by other", "word by tool"]);
    assert_eq!(with(&|find| find.before = Some(Millis(20))), ["word by user"]);
}

fn hostile_queries_are_harmless(store: &dyn Store) {
    write(
        store,
        vec![create("a"), append("a", &["the quick brown fox"]), append("a", &["rank text number"])],
    );
    let hostile = [
        "\"",
        "\"\"",
        "'",
        "*",
        "**",
        "(",
        ")",
        "(((",
        "AND",
        "OR",
        "NOT",
        "AND OR NOT",
        "NEAR(quick)",
        "text:",
        "-",
        "--",
        "^",
        "{}",
        "\\",
        "\0",
        "%",
        "_",
        "a\"b\"c\"",
        "quick AND",
        "OR quick",
        "NOT quick",
        "quick NOT",
        "quick OR OR",
        "\"quick",
        "quick\"",
        "quick*brown",
        "rank:quick",
        "number MATCH 'x'",
        ":*",
        "&",
        "|",
        "!",
        "<->",
        "quick & !fox",
        "' OR 1=1 --",
        "$1",
        "?1",
        "\u{feff}",
        "\u{202e}quick",
        "🚀",
        "🚀 quick",
        "quick:*",
        "(quick | fox",
        "é\u{301}\u{301}",
        "\u{d7ff}",
        "𝔮𝔲𝔦𝔠𝔨",
    ];
    for query in hostile {
        store.search(&all(query)).unwrap_or_else(|error| panic!("{query:?}: {error}"));
    }
    for query in [
        "quick AND",
        "OR quick",
        "NOT quick",
        "\"quick",
        "quick\"",
        "🚀 quick",
        "\u{202e}quick",
        "^quick",
        "𝔮𝔲𝔦𝔠𝔨",
    ] {
        check(store, query, &["the quick brown fox"]);
    }
    for query in ["text:quick", "rank:quick", "brown quick fox the NOT the", "NEAR(quick fox)"] {
        check(store, query, &[]);
    }
    for junk in ["(\"x* OR NOT ", "quick ", "\"", "日本", "a.b/c-", "*é*"] {
        store.search(&all(&junk.repeat(10_000 / junk.len()))).unwrap();
    }
}

fn new_messages_are_found_at_once(store: &dyn Store) {
    write(store, vec![create("a")]);
    // More messages than the index adds in one batch.
    for i in 0..300 {
        write(store, vec![append("a", &[&format!("message number{i} end")])]);
        if i % 60 == 0 {
            check(store, &format!("number{i}"), &[&format!("message number{i} end")]);
        }
    }
    for i in [0, 1, 255, 256, 257, 298, 299] {
        check(store, &format!("number{i}"), &[&format!("message number{i} end")]);
        check(
            store,
            &format!("*mber{i}*"),
            &texts(store, &all(&format!("number{i}*"))).iter().map(String::as_str).collect::<Vec<_>>(),
        );
    }
    assert_eq!(store.search(&SearchSpec { limit: 1_000, ..all("message end") }).unwrap().hits.len(), 300);
}

fn rewind(store: &dyn Store, name: &str, to: &str) {
    let to = node(store, name, to);
    write(store, vec![note(name, "rewound", "{}"), Op::MoveTip(id(name), Some(to))]);
}

fn rewound_messages_are_hidden(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["keep word", "bad word", "日本 bad"])]);
    check(store, "bad", &["bad word", "日本 bad"]);
    rewind(store, "a", "keep word");
    // Words, parts of words and single characters.
    for query in ["bad", "*ba*", "bad*", "日", "word bad"] {
        check(store, query, &[]);
    }
    write(store, vec![append("a", &["good word"])]);
    check(store, "word", &["good word", "keep word"]);
    store.collect_garbage().unwrap();
    check(store, "word", &["good word", "keep word"]);
}

fn redone_messages_are_found_again(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["keep word", "undone word"])]);
    let undone = tip(store, "a");
    rewind(store, "a", "keep word");
    check(store, "undone", &[]);
    write(store, vec![Op::MoveTip(id("a"), undone)]);
    check(store, "undone", &["undone word"]);
}

fn forks_are_separate_results(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["begin", "word here"])]);
    let begin = node(store, "a", "begin");
    write_at(
        store,
        2,
        vec![create_from("b", Some(("a", Relation::Fork)), Some(begin)), append("b", &["word there"])],
    )
    .unwrap();
    let find = SearchSpec { is_one_per_lineage: true, ..all("word") };
    let mut hits = found(store, &find);
    hits.sort();
    assert_eq!(hits, ["a: word here", "b: word there"]);
}

fn shared_message_is_found_once(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["shared word", "more"])]);
    let shared = node(store, "a", "shared word");
    write_at(
        store,
        2,
        vec![create_from("b", Some(("a", Relation::Fork)), Some(shared)), append("b", &["other"])],
    )
    .unwrap();
    let hits = store.search(&all("word")).unwrap();
    assert_eq!(hits.hits.len(), 1);
    assert_eq!(hits.hits[0].session.id, id("a"));
    assert_eq!(hits.hits[0].also_in, [id("b")]);
    // A search in the fork attributes the message to the fork.
    assert_eq!(found(store, &SearchSpec { session: Some(id("b")), ..all("word") }), ["b: shared word"]);
    // The same after the first session is deleted.
    write(store, vec![Op::Delete(id("a"))]);
    assert_eq!(found(store, &all("word")), ["b: shared word"]);
    check(store, "more", &[]);
}

fn rotations_are_one_lineage(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["word one", "word two"])]);
    let tip = tip(store, "a");
    let ended = Op::Update(id("a"), SessionUpdate::End(EndReason::Compression));
    let rotated = create_from("b", Some(("a", Relation::Rotation)), tip);
    write_at(store, 2, vec![ended, rotated, append("b", &["word three"])]).unwrap();
    let hits = store.search(&SearchSpec { is_one_per_lineage: true, ..all("word") }).unwrap();
    assert_eq!(hits.hits.len(), 1);
    assert_eq!(hits.hits[0].session.id, id("b"));
    assert!(hits.hits[0].also_in.is_empty());
    check(store, "word", &["word one", "word three", "word two"]);
}

fn deleted_sessions_are_hidden(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["secret word"]), create("b"), append("b", &["open word"])]);
    check(store, "word", &["open word", "secret word"]);
    write(store, vec![Op::Delete(id("a"))]);
    check(store, "word", &["open word"]);
    store.collect_garbage().unwrap();
    check(store, "word", &["open word"]);
    check(store, "*ecre*", &[]);
    // Deleted messages can be stored again.
    write(store, vec![create("c"), append("c", &["secret word"])]);
    check(store, "*ecre*", &["secret word"]);
}

fn live_messages_are_left_out(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["word 0", "word 1", "word 2", "word 3", "word 4"])]);
    write(store, vec![create("b"), append("b", &["word elsewhere"])]);
    let live = |depths: &[std::ops::Range<u32>]| {
        let live = LiveMessages { session: id("a"), depths: depths.to_vec() };
        texts(store, &SearchSpec { live: Some(live), ..all("word") })
    };
    assert_eq!(live(&[0..1, 3..5]), ["word 1", "word 2", "word elsewhere"]);
    assert_eq!(live(&[0..2, 2..5]), ["word elsewhere"]);
    assert_eq!(live(&[]).len(), 6);
    let unknown_caller = LiveMessages { session: id("none"), depths: vec![0..5, 5..9] };
    assert_eq!(texts(store, &SearchSpec { live: Some(unknown_caller), ..all("word") }).len(), 6);
}

fn live_messages_of_a_fork_are_left_out(store: &dyn Store) {
    write(store, vec![create("a"), append("a", &["word 0", "word 1", "word 2"])]);
    let at = node(store, "a", "word 1");
    write_at(
        store,
        2,
        vec![create_from("b", Some(("a", Relation::Fork)), Some(at)), append("b", &["word b"])],
    )
    .unwrap();
    let live = Some(LiveMessages { session: id("b"), depths: vec![0..1, 2..3] });
    assert_eq!(texts(store, &SearchSpec { live, ..all("word") }), ["word 1", "word 2"]);
}

fn long_messages_are_indexed_completely(store: &dyn Store) {
    let mut text = String::new();
    for i in 0..40_000 {
        text.push_str(&format!("w{i} "));
    }
    text.push_str("needle in haystack");
    write(store, vec![create("a"), append("a", &[&text, "haystack in needle"])]);
    let n_found = |query: &str| store.search(&all(query)).unwrap().hits.len();
    assert_eq!(n_found("needle haystack"), 2);
    assert_eq!(n_found("\"needle in haystack\""), 1);
    assert_eq!(n_found("\"w39998 w39999 needle\""), 1);
    assert_eq!(n_found("\"w39998 needle\""), 0);
    assert_eq!(n_found("*39999*"), 1);
    assert_eq!(n_found("w1 w20000 NOT needle"), 0);
}

fn malformed_messages_are_searchable(store: &dyn Store) {
    let long = "x".repeat(100_000);
    let odd = [
        "",
        "null",
        "[]",
        "{",
        "\0",
        "{\"role\":\"user\",\"content\":\"nul\\u0000 byte\"}",
        "plain text",
        &long,
    ];
    let messages = odd.map(|json| NewMessage { json: json.into(), at: None });
    write(store, vec![create("a"), Op::Append(id("a"), messages.to_vec())]);
    let n_found = |query: &str| store.search(&all(query)).unwrap().hits.len();
    assert_eq!(n_found("plain text"), 1);
    assert_eq!(n_found("nul byte"), 1);
    assert_eq!(n_found(&long[..30 * 64]), 1);
}

fn common_words_find_all_messages(store: &dyn Store) {
    write(store, vec![create("old"), append("old", &["common here", "common and rare"])]);
    let messages: Vec<String> = (0..2_500).map(|i| format!("common {i}")).collect();
    let messages: Vec<&str> = messages.iter().map(String::as_str).collect();
    write_at(store, 2, vec![create("a"), append("a", &messages)]).unwrap();
    let hits = store.search(&SearchSpec { is_one_per_lineage: true, ..all("common") }).unwrap();
    let mut sessions: Vec<&str> = hits.hits.iter().map(|found| found.session.id.0.as_str()).collect();
    sessions.sort_unstable();
    assert_eq!(sessions, ["a", "old"]);
    let everything = SearchSpec { limit: 10_000, ..all("common") };
    assert_eq!(store.search(&everything).unwrap().hits.len(), 2_502);
    assert_eq!(texts(store, &SearchSpec { session: Some(id("old")), ..all("common") }).len(), 2);
    assert_eq!(texts(store, &SearchSpec { before: Some(Millis(2)), ..all("common") }).len(), 2);
    check(store, "common rare", &["common and rare"]);
    for order in [HitOrder::Newest, HitOrder::Oldest] {
        let whole = found(store, &SearchSpec { order, limit: 10_000, ..all("common") });
        let paged: Vec<String> = (0..6)
            .flat_map(|page| {
                found(store, &SearchSpec { order, limit: 500, offset: 500 * page, ..all("common") })
            })
            .collect();
        assert_eq!(whole, paged);
    }
    let oldest = found(store, &SearchSpec { order: HitOrder::Oldest, limit: 2, ..all("common") });
    assert!(oldest.iter().all(|hit| hit.starts_with("old: ")), "{oldest:?}");
}

fn truncated_expansions_are_reported(store: &dyn Store) {
    let messages: Vec<String> = (0..300).map(|i| format!("word{i:03}x")).collect();
    write(store, vec![create("a"), append("a", &[&messages.join(" "), "few partly parts"])]);
    assert!(store.search(&all("*ord*")).unwrap().is_bounded);
    assert!(store.search(&all("word*")).unwrap().is_bounded);
    assert!(!store.search(&all("*art*")).unwrap().is_bounded);
    assert!(!store.search(&all("few")).unwrap().is_bounded);
}
