//! The four kinds of reply, and the examples in the guide.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use fanfold_store::search::{LiveMessages, Profiles, SearchRequest, Searcher};
use fanfold_store::{EndReason, Op, Relation, SessionUpdate, SqliteStore, Store, StoreError};
use serde_json::{Value, json};

use crate::search::{begin, say};
use crate::shorthand::*;

/// A week of work: a long session and its fork, a rotated session, a job, and a subagent's session.
fn week() -> SqliteStore {
    let store = SqliteStore::in_memory();
    let day = 86_400_000;
    begin(&store, "monday", day, "cli");
    say(&store, "monday", day, "system", "You are a careful engineer. Mind the parser.");
    for i in 0..20 {
        let at = day + 1_000 * i;
        say(&store, "monday", at, "user", &format!("question {i}"));
        say(&store, "monday", at, "assistant", &format!("answer {i}"));
        if i == 9 {
            say(&store, "monday", at, "tool", "error: the parser fails at src/lexer.rs:42");
        }
    }
    write_at(&store, 2 * day, vec![title("monday", "Parser work")]).unwrap();
    let at = chain(&store, "monday")[10].id;
    write_at(&store, 2 * day, vec![create_from("fork", Some(("monday", Relation::Fork)), Some(at))]).unwrap();
    say(&store, "fork", 2 * day, "user", "or write the parser anew");
    begin(&store, "rotated", 3 * day, "cli");
    say(&store, "rotated", 3 * day, "user", "the parser is slow");
    let ended = Op::Update(id("rotated"), SessionUpdate::End(EndReason::Compression));
    let rotated = create_from("rotated-2", Some(("rotated", Relation::Rotation)), tip(&store, "rotated"));
    write_at(&store, 3 * day, vec![ended, rotated]).unwrap();
    say(&store, "rotated-2", 3 * day, "assistant", "the parser is quick now");
    begin(&store, "job", 4 * day, "cron");
    say(&store, "job", 4 * day, "assistant", "parser parser parser");
    begin(&store, "helper", 4 * day, "subagent");
    say(&store, "helper", 4 * day, "user", "parser parser parser parser");
    store
}

/// Prints a reply with the numbers of its messages; the hit or requested message has a star.
fn brief(reply: &Value) -> String {
    let numbers = |messages: &Value| {
        let number = |message: &Value| {
            format!("{}{}", message["id"], if message["anchor"] == true { "*" } else { "" })
        };
        let numbers: Vec<String> = messages.as_array().unwrap().iter().map(number).collect();
        format!("[{}]", numbers.join(" "))
    };
    if reply["success"] == false {
        return format!("{}\n", reply["error"].as_str().unwrap());
    }
    let mut out = reply["mode"].as_str().unwrap().to_owned();
    for key in [
        "count",
        "sessions_searched",
        "widened",
        "bounded",
        "profile",
        "session_id",
        "warning",
        "message_count",
    ] {
        if !reply[key].is_null() {
            out += &format!(" {key}={}", reply[key]);
        }
    }
    if reply["messages"].is_array() {
        out += &format!(" {}", numbers(&reply["messages"]));
        out += &format!(" before={} after={}", reply["messages_before"], reply["messages_after"]);
    }
    out.push('\n');
    for result in reply["results"].as_array().into_iter().flatten() {
        let text = |key: &str| result[key].as_str().unwrap_or("-").to_owned();
        if reply["mode"] == "browse" {
            let (title, preview) = (text("title"), text("preview"));
            out += &format!(
                "  {} ({title}) {} messages: {preview}\n",
                text("session_id"),
                result["message_count"]
            );
            continue;
        }
        out += &format!("  {} {}: {}\n", text("session_id"), text("matched_role"), text("snippet"));
        out += &format!(
            "    {} {} {} before={} after={}",
            numbers(&result["bookend_start"]),
            numbers(&result["messages"]),
            numbers(&result["bookend_end"]),
            result["messages_before"],
            result["messages_after"]
        );
        for key in ["parent_session_id", "relation", "also_in", "folded"] {
            if !result[key].is_null() {
                out += &format!(" {key}={}", result[key]);
            }
        }
        out.push('\n');
    }
    if let Some(message) = reply["message"].as_str().filter(|_| reply["mode"] != "browse") {
        out += &format!("  {message}\n");
    }
    out
}

fn ask(search: &Searcher<'_>, request: &Value) -> Value {
    search.answer_json(&serde_json::from_value::<SearchRequest>(request.clone()).unwrap())
}

fn check(search: &Searcher<'_>, requests: &[Value], expected: &Expect) {
    let mut actual = String::new();
    for request in requests {
        actual += &format!("{request}\n{}", brief(&ask(search, request)));
    }
    expected.assert_eq(&actual);
}

#[test]
fn discover() {
    let store = week();
    check(
        &Searcher::new(&store),
        &[
            json!({ "query": "parser" }),
            json!({ "query": "parser", "limit": 99 }),
            json!({ "query": "Parser work" }),
            json!({ "query": "parser", "sort": "oldest", "limit": 1 }),
            json!({ "query": "parser", "role_filter": "tool,system" }),
            json!({ "query": "parser", "source_filter": "subagent" }),
            json!({ "query": "parser", "since": 172_800.0, "before": 259_200.0 }),
            json!({ "query": "question", "session_id": "fork", "limit": 2, "window": 1 }),
            json!({ "query": "lexer.rs", "window": 2 }),
            json!({ "query": "arse exe" }),
            json!({ "query": "nothing of the sort" }),
            json!({ "query": "\"" }),
        ],
        &expect![[r#"
            {"query":"parser"}
            discover count=3 sessions_searched=4
              rotated-2 user: the >>>parser<<< is slow
                [] [44* 45] [] before=0 after=0 parent_session_id="rotated" relation="rotation"
              fork user: or write the >>>parser<<< anew
                [2 3 4] [7 8 9 10 11 43*] [] before=6 after=0 parent_session_id="monday" relation="fork"
              monday tool: error: the >>>parser<<< fails at src/lexer.rs:42
                [2 3 4] [17 18 19 20 21 22* 23 24 25 26 27] [40 41 42] before=16 after=15
            {"query":"parser","limit":99}
            discover count=4 sessions_searched=4
              rotated-2 user: the >>>parser<<< is slow
                [] [44* 45] [] before=0 after=0 parent_session_id="rotated" relation="rotation"
              fork user: or write the >>>parser<<< anew
                [2 3 4] [7 8 9 10 11 43*] [] before=6 after=0 parent_session_id="monday" relation="fork"
              monday tool: error: the >>>parser<<< fails at src/lexer.rs:42
                [2 3 4] [17 18 19 20 21 22* 23 24 25 26 27] [40 41 42] before=16 after=15
              job assistant: >>>parser<<< >>>parser<<< >>>parser<<<
                [] [46*] [] before=0 after=0
            {"query":"Parser work"}
            discover count=1 sessions_searched=1
              monday session_title: >>>Parser work<<<
                [2 3 4] [] [40 41 42] before=0 after=42
            {"query":"parser","sort":"oldest","limit":1}
            discover count=1 sessions_searched=4
              monday tool: error: the >>>parser<<< fails at src/lexer.rs:42
                [2 3 4] [17 18 19 20 21 22* 23 24 25 26 27] [40 41 42] before=16 after=15
            {"query":"parser","role_filter":"tool,system"}
            discover count=1 sessions_searched=1
              monday system: You are a careful engineer. Mind the >>>parser<<<.
                [] [1* 2 3 4 5 6] [40 41 42] before=0 after=36 also_in=["fork"]
            {"query":"parser","source_filter":"subagent"}
            discover count=1 sessions_searched=1
              helper user: >>>parser<<< >>>parser<<< >>>parser<<< >>>parser<<<
                [] [47*] [] before=0 after=0
            {"query":"parser","since":172800.0,"before":259200.0}
            discover count=1 sessions_searched=1
              fork user: or write the >>>parser<<< anew
                [2 3 4] [7 8 9 10 11 43*] [] before=6 after=0 parent_session_id="monday" relation="fork"
            {"query":"question","session_id":"fork","limit":2,"window":1}
            discover count=2 sessions_searched=1
              fork user: >>>question<<< 4
                [2 3 4] [9 10* 11] [43] before=8 after=1 parent_session_id="monday" relation="fork"
              fork user: >>>question<<< 3
                [2 3 4] [7 8* 9] [10 11 43] before=6 after=3 parent_session_id="monday" relation="fork"
            {"query":"lexer.rs","window":2}
            discover count=1 sessions_searched=1
              monday tool: error: the parser fails at src/>>>lexer.rs<<<:42
                [2 3 4] [20 21 22* 23 24] [40 41 42] before=19 after=18
            {"query":"arse exe"}
            discover count=1 sessions_searched=1 widened=true
              monday tool: error: the >>>parser<<< fails at src/>>>lexer<<<.rs:42
                [2 3 4] [17 18 19 20 21 22* 23 24 25 26 27] [40 41 42] before=16 after=15
            {"query":"nothing of the sort"}
            discover count=0 sessions_searched=0
              no message has all of these words; try fewer of them, parts of them (*part*), or one OR another
            {"query":"\""}
            discover count=0 sessions_searched=0
              no message has all of these words; try fewer of them, parts of them (*part*), or one OR another
        "#]],
    );
}

#[test]
fn scroll() {
    let store = week();
    check(
        &Searcher::new(&store),
        &[
            json!({ "session_id": "monday", "around_message_id": 22 }),
            json!({ "session_id": "monday", "around_message_id": 1, "window": 2 }),
            json!({ "session_id": "monday", "around_message_id": 42, "window": 99 }),
            json!({ "session_id": "fork", "around_message_id": 43, "window": 2, "query": "ignored" }),
            json!({ "session_id": "rotated", "around_message_id": 45 }),
            json!({ "session_id": "monday", "around_message_id": 43 }),
            json!({ "session_id": "monday", "around_message_id": -1 }),
            json!({ "session_id": "nobody", "around_message_id": 1 }),
        ],
        &expect![[r#"
            {"session_id":"monday","around_message_id":22}
            scroll session_id="monday" [17 18 19 20 21 22* 23 24 25 26 27] before=16 after=15
            {"session_id":"monday","around_message_id":1,"window":2}
            scroll session_id="monday" [1* 2 3] before=0 after=39
            {"session_id":"monday","around_message_id":42,"window":99}
            scroll session_id="monday" [22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42*] before=21 after=0
            {"session_id":"fork","around_message_id":43,"window":2,"query":"ignored"}
            scroll session_id="fork" [10 11 43*] before=9 after=0
            {"session_id":"rotated","around_message_id":45}
            scroll session_id="rotated-2" warning="message 45 is not in session rotated; these messages are from rotated-2" [44 45*] before=0 after=0
            {"session_id":"monday","around_message_id":43}
            session monday has no message 43

            hint: take an id from the messages of a result
            {"session_id":"monday","around_message_id":-1}
            session monday has no message -1

            hint: take an id from the messages of a result
            {"session_id":"nobody","around_message_id":1}
            there is no session nobody

            hint: leave out session_id to see the last sessions
        "#]],
    );
}

#[test]
fn read() {
    let store = week();
    check(
        &Searcher::new(&store),
        &[
            json!({ "session_id": "monday" }),
            json!({ "session_id": "fork" }),
            json!({ "session_id": "rotated-2" }),
            json!({ "session_id": "nobody" }),
            json!({ "query": "parser", "role_filter": "person" }),
        ],
        &expect![[r#"
            {"session_id":"monday"}
            read session_id="monday" message_count=42 [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 33 34 35 36 37 38 39 40 41 42] before=null after=null
              the first 20 and the last 10 of 42 messages; scroll with around_message_id 20 to see those between them
            {"session_id":"fork"}
            read session_id="fork" message_count=12 [1 2 3 4 5 6 7 8 9 10 11 43] before=null after=null
            {"session_id":"rotated-2"}
            read session_id="rotated-2" message_count=2 [44 45] before=null after=null
            {"session_id":"nobody"}
            there is no session nobody

            hint: leave out session_id to see the last sessions
            {"query":"parser","role_filter":"person"}
            there is no role "person"

            hint: roles are user, assistant, tool, system and other
        "#]],
    );
}

#[test]
fn browse() {
    let store = week();
    check(
        &Searcher::new(&store),
        &[
            json!({}),
            json!({ "limit": 2, "offset": 1 }),
            json!({ "source_filter": "subagent" }),
            json!({ "query": "  " }),
        ],
        &expect![[r#"
            {}
            browse count=4
              job (-) 1 messages: parser parser parser
              rotated-2 (-) 2 messages: the parser is slow
              monday (Parser work) 42 messages: question 0
              fork (-) 12 messages: question 0
            {"limit":2,"offset":1}
            browse count=2
              rotated-2 (-) 2 messages: the parser is slow
              monday (Parser work) 42 messages: question 0
            {"source_filter":"subagent"}
            browse count=1
              helper (-) 1 messages: parser parser parser parser
            {"query":"  "}
            browse count=4
              job (-) 1 messages: parser parser parser
              rotated-2 (-) 2 messages: the parser is slow
              monday (Parser work) 42 messages: question 0
              fork (-) 12 messages: question 0
        "#]],
    );
}

/// Folded messages of the caller's own session must be found.
#[test]
fn folded_messages_are_found_and_live_ones_are_not() {
    let store = week();
    let caller = |depths: &[std::ops::Range<u32>]| {
        let caller = Some(LiveMessages { session: id("monday"), depths: depths.to_vec() });
        Searcher { caller, ..Searcher::new(&store) }
    };
    let request = [json!({ "query": "lexer", "window": 1 }), json!({ "query": "question 3", "window": 1 })];
    check(
        &caller(&[0..1, 30..42]),
        &request,
        &expect![[r#"
        {"query":"lexer","window":1}
        discover count=1 sessions_searched=1
          monday tool: error: the parser fails at src/>>>lexer<<<.rs:42
            [2 3 4] [21 22* 23] [40 41 42] before=20 after=19 folded=true
        {"query":"question 3","window":1}
        discover count=1 sessions_searched=1
          monday user: >>>question<<< >>>3<<<
            [2 3 4] [7 8* 9] [40 41 42] before=6 after=33 also_in=["fork"] folded=true
    "#]],
    );
    check(
        &caller(&[0..10, 10..42]),
        &request,
        &expect![[r#"
        {"query":"lexer","window":1}
        discover count=0 sessions_searched=0
          no message has all of these words; try fewer of them, parts of them (*part*), or one OR another
        {"query":"question 3","window":1}
        discover count=0 sessions_searched=0
          no message has all of these words; try fewer of them, parts of them (*part*), or one OR another
    "#]],
    );
    // The caller's own messages can be scrolled, too.
    let caller = caller(&[0..1, 30..42]);
    check(
        &caller,
        &[json!({ "session_id": "monday", "around_message_id": 22, "window": 1 }), json!({ "limit": 2 })],
        &expect![[r#"
            {"session_id":"monday","around_message_id":22,"window":1}
            scroll session_id="monday" [21 22* 23] before=20 after=19
            {"limit":2}
            browse count=2
              job (-) 1 messages: parser parser parser
              rotated-2 (-) 2 messages: the parser is slow
        "#]],
    );
}

struct FolderProfiles(PathBuf);

impl Profiles for FolderProfiles {
    fn names(&self) -> Vec<String> {
        vec!["work".into()]
    }

    fn open(&self, name: &str) -> Result<Box<dyn Store>, StoreError> {
        Ok(Box::new(SqliteStore::open_read_only(&self.0.join(name))?))
    }
}

#[test]
fn other_profiles_are_opened_read_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("work")).unwrap();
    let other = SqliteStore::open(&folder.path().join("work")).unwrap();
    write(&other, vec![create("theirs"), append("theirs", &["their parser", "the rest"])]);
    let store = week();
    let profiles = FolderProfiles(folder.path().to_owned());
    let search = Searcher { profiles: &profiles, ..Searcher::new(&store) };
    check(
        &search,
        &[
            json!({ "query": "parser", "profile": "work" }),
            json!({ "session_id": "work/theirs" }),
            json!({ "session_id": "theirs" }),
            json!({ "session_id": "theirs", "around_message_id": 1 }),
            json!({ "profile": "work" }),
            json!({ "profile": "none" }),
        ],
        &expect![[r#"
            {"query":"parser","profile":"work"}
            discover count=1 sessions_searched=1 profile="work"
              theirs user: their >>>parser<<<
                [] [1* 2] [] before=0 after=0
            {"session_id":"work/theirs"}
            read profile="work" session_id="theirs" message_count=2 [1 2] before=null after=null
            {"session_id":"theirs"}
            read profile="work" session_id="theirs" message_count=2 [1 2] before=null after=null
            {"session_id":"theirs","around_message_id":1}
            scroll profile="work" session_id="theirs" [1* 2] before=0 after=0
            {"profile":"work"}
            browse count=1 profile="work"
              theirs (-) 2 messages: their parser
            {"profile":"none"}
            there is no profile "none"

            hint: profiles are work
        "#]],
    );
    // Reading does not index: the file is unchanged.
    let path = folder.path().join("work/sessions.db");
    let file = rusqlite::Connection::open(&path).unwrap();
    let n_indexed: i64 = file.query_row("SELECT count(*) FROM indexed", [], |row| row.get(0)).unwrap();
    assert_eq!(n_indexed, 0);
}

#[test]
fn discover_truncates_long_texts_and_scroll_does_not() {
    let store = SqliteStore::in_memory();
    begin(&store, "a", 0, "cli");
    let long = format!("needle {}", "x ".repeat(10_000));
    say(&store, "a", 0, "user", &long);
    let search = Searcher::new(&store);
    let found = &ask(&search, &json!({ "query": "needle" }))["results"][0]["messages"][0];
    assert!(found["content"].as_str().unwrap().len() < 5_000);
    assert_eq!(found["content_chars"], long.chars().count());
    let scrolled = &ask(&search, &json!({ "session_id": "a", "around_message_id": 1 }))["messages"][0];
    assert_eq!(scrolled["content"], long);
    assert!(scrolled["content_chars"].is_null());
}

/// The conversation in the guide.
fn store_of_the_guide() -> SqliteStore {
    let store = SqliteStore::in_memory();
    let at = 1_794_733_200_000;
    begin(&store, "kiln", at, "cli");
    say(&store, "kiln", at, "user", "why does the kiln sensor read 0 after a restart?");
    say(&store, "kiln", at + 60_000, "assistant", "I look at the driver.");
    say(&store, "kiln", at + 61_000, "tool", "src/sensor.rs:88: let offset = self.offset.unwrap_or(0);");
    say(&store, "kiln", at + 90_000, "assistant", "The offset is not saved. I write it to flash.");
    write_at(&store, at + 91_000, vec![title("kiln", "Kiln sensor")]).unwrap();
    store
}

#[test]
fn examples_of_the_guide_are_correct() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/search.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let store = store_of_the_guide();
    let search = Searcher::new(&store);
    let mut parts: Vec<String> = page.split("```json\n").map(str::to_owned).collect();
    assert!(parts.len() >= 9, "the page has an example of each kind");
    let examples = parts[1..].chunks_mut(2);
    for example in examples {
        let [question, answer] = example else { panic!("a request has no reply") };
        let request: Value = serde_json::from_str(question.split_once("```").unwrap().0).unwrap();
        let reply = ask(&search, &request);
        let (shown, rest) = answer.split_once("```").unwrap();
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            *answer = format!("{}\n```{rest}", serde_json::to_string_pretty(&reply).unwrap());
            continue;
        }
        let shown: Value = serde_json::from_str(shown).unwrap_or_default();
        assert_eq!(reply, shown, "the reply to {request} in docs/guide/search.md");
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, parts.join("```json\n")).unwrap();
    }
}
