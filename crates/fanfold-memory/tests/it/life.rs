//! A turn: asked before the call, written down after it, in order, and ended in good order.

use std::time::{Duration, Instant};

use fanfold_memory::{
    EntryChange, MemoryClient, MemoryEvent, MemoryFile, MemoryFiles, MemoryLimits, MemoryTurn,
};
use fanfold_testkit::fakes::memory_server::{Behaviour, MemoryServer};
use serde_json::json;

use crate::setting::{count, http, limits, mcp, program, recall, turn, until};

const FACTS: [&str; 2] = ["the staging port is 8443", "releases are cut on Tuesdays"];

/// Time enough for a busy machine, where a test is not about time.
fn patient() -> MemoryLimits {
    MemoryLimits { deadline: Duration::from_secs(20), call: Duration::from_secs(20), ..limits() }
}

#[test]
fn every_kind_of_provider_recalls_and_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let server = MemoryServer::start(Behaviour::Normal, &FACTS);
    let places = [http(&server.url()), mcp(&server.mcp_url()), program(Behaviour::Normal, &log)];
    for place in places {
        let name = format!("{place:?}");
        let keeper = crate::setting::keeper(place, patient());
        let first = turn(1, "Which port does staging use?");
        let (text, _) = recall(&keeper, &first);
        assert_eq!(text.as_deref(), Some("- the staging port is 8443"), "{name}");
        keeper.turn_answered(&first, "It is 8443.");
        assert!(until(|| count(&keeper, MemoryEvent::Synced) == 1), "{name}");
        let abandoned = keeper.stop();
        assert_eq!((abandoned.n_writes, abandoned.is_stopped), (0, false), "{name}");
    }
    let said =
        json!({ "session": "this-talk", "user": "Which port does staging use?", "assistant": "It is 8443." });
    assert_eq!(server.requests_to("sync"), [said]);
    let written = "user: Which port does staging use?\nassistant: It is 8443.";
    assert_eq!(server.requests_to("add_memory"), [json!({ "text": written })]);
    let logged = std::fs::read_to_string(log).unwrap();
    assert!(logged.contains(&format!("add_memory {}", json!({ "text": written }))), "{logged}");
}

#[test]
fn writes_keep_their_order_and_the_end_comes_last() {
    let server = MemoryServer::start(Behaviour::Slow(3), &[]);
    let keeper = keeper(&server);
    for i in 0..20 {
        let asked = turn(i, &format!("question {i}"));
        keeper.turn_answered(&asked, &format!("answer {i}"));
        if i % 5 == 0 {
            keeper.offer_folded(&asked, &[format!("folded {i}")]);
        }
    }
    let abandoned = keeper.stop();
    assert_eq!((abandoned.n_writes, abandoned.is_stopped), (0, false));
    let order: Vec<String> = server
        .requests()
        .into_iter()
        .filter_map(|(route, body)| match route.as_str() {
            "sync" => Some(body["user"].as_str().unwrap().to_owned()),
            "offer" => Some(body["texts"][0].as_str().unwrap().to_owned()),
            "end" => Some("end".to_owned()),
            _ => None,
        })
        .collect();
    let expected: Vec<String> = (0..20)
        .flat_map(|i| {
            let offer = (i % 5 == 0).then(|| format!("folded {i}"));
            std::iter::once(format!("question {i}")).chain(offer)
        })
        .chain(["end".to_owned()])
        .collect();
    assert_eq!(order, expected);
}

#[test]
fn a_conversation_that_was_silent_for_long_has_ended_and_may_go_on() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let brief = MemoryLimits { idle: Duration::from_millis(60), ..patient() };
    let keeper = crate::setting::keeper(http(&server.url()), brief);
    let n_ended = || server.requests_to("end").len();
    keeper.turn_answered(&turn(1, "question 1"), "answer 1");
    assert!(until(|| n_ended() == 1), "nobody had to say so");
    assert_eq!(server.requests_to("end"), [json!({ "session": "this-talk" })]);
    keeper.turn_answered(&turn(2, "question 2"), "answer 2");
    assert!(until(|| n_ended() == 2), "it went on, and ended again");
    keeper.stop();
    assert_eq!(n_ended(), 2, "it is told once");
    let order: Vec<String> = server.requests().into_iter().map(|(route, _)| route).collect();
    let order: Vec<&str> = order.iter().map(String::as_str).filter(|route| *route != "prefetch").collect();
    assert_eq!(order, ["sync", "end", "sync", "end"]);
}

#[test]
fn a_conversation_goes_on_while_it_asks() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let idle = Duration::from_millis(500);
    let keeper = crate::setting::keeper(http(&server.url()), MemoryLimits { idle, ..patient() });
    keeper.turn_answered(&turn(1, "question 1"), "answer 1");
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    // The requests of one long turn, which is not answered yet.
    for _ in 0..9 {
        recall(&keeper, &turn(2, "question 2"));
        longest = longest.max(last.elapsed());
        last = Instant::now();
        std::thread::sleep(Duration::from_millis(80));
    }
    // A busy machine may have slept longer.
    let was_heard = longest.max(last.elapsed()) < idle;
    assert!(!was_heard || server.requests_to("end").is_empty());
}

#[test]
fn a_conversation_that_was_replaced_by_others_has_ended() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let keeper = crate::setting::keeper(http(&server.url()), MemoryLimits { conversations: 2, ..patient() });
    for name in ["a", "b", "a", "c"] {
        keeper.turn_answered(&MemoryTurn { conversation: name.to_owned(), ..turn(1, "question") }, "answer");
    }
    assert!(until(|| server.requests_to("end").len() == 1));
    assert_eq!(server.requests_to("end"), [json!({ "session": "b" })], "it was silent longest");
    keeper.stop();
    let ended: Vec<String> =
        server.requests_to("end").iter().map(|end| end["session"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ended, ["b", "a", "c"], "the others end with the keeper");
}

#[test]
fn a_turn_keeps_what_was_recalled_for_it() {
    let server = MemoryServer::start(Behaviour::Normal, &FACTS);
    let keeper = keeper(&server);
    let first = turn(1, "the staging port?");
    let (text, _) = recall(&keeper, &first);
    server.set_behaviour(Behaviour::Hang);
    for _ in 0..3 {
        let (again, took) = recall(&keeper, &first);
        assert_eq!(again, text);
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    assert_eq!(server.requests_to("prefetch").len(), 1, "it was asked once");
}

#[test]
fn what_was_looked_for_ahead_stands_in_when_nothing_comes() {
    let server = MemoryServer::start(Behaviour::Normal, &FACTS);
    let keeper = crate::setting::keeper(http(&server.url()), limits());
    keeper.turn_answered(&turn(1, "the staging port?"), "8443");
    assert!(until(|| server.requests_to("prefetch").len() == 1));
    // The answer is on its way back.
    std::thread::sleep(Duration::from_millis(100));
    server.set_behaviour(Behaviour::Hang);
    let (text, took) = recall(&keeper, &turn(2, "and the other port?"));
    assert_eq!(text.as_deref(), Some("- the staging port is 8443"));
    assert!(took < Duration::from_millis(600), "{took:?}");
}

#[test]
fn secrets_and_scaffolding_do_not_leave() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let keeper = keeper(&server);
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let asked = format!("<system-reminder>be brief</system-reminder>push with {secret}");
    let pushing = turn(1, &asked);
    recall(&keeper, &pushing);
    keeper.turn_answered(&pushing, &format!("pushed with {secret}"));
    keeper.offer_folded(&pushing, &[format!("token {secret}")]);
    keeper.stop();
    let all = serde_json::to_string(&server.requests()).unwrap();
    assert!(!all.contains(&secret) && !all.contains("be brief"), "{all}");
    assert!(all.matches("[redacted").count() >= 4, "{all}");
    // What nobody said is not remembered.
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let quiet = self::keeper(&server);
    quiet.turn_answered(&turn(1, "<system-reminder>x</system-reminder>"), "done");
    quiet.turn_answered(&turn(2, "hello"), "  ");
    quiet.stop();
    assert_eq!(server.requests(), []);
}

fn keeper(server: &MemoryServer) -> MemoryClient {
    crate::setting::keeper(http(&server.url()), patient())
}

#[test]
fn the_files_are_recalled_too_with_or_without_a_provider() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryFiles::new(folder.path());
    memory.change(MemoryFile::Notes, &[EntryChange::Add("the tests need a server".to_owned())]).unwrap();
    memory.change(MemoryFile::User, &[EntryChange::Add("prefers short answers".to_owned())]).unwrap();
    let alone = MemoryClient::start(None, Some(memory), limits(), None).unwrap();
    let (text, took) = recall(&alone, &turn(1, "hello there"));
    assert_eq!(text.as_deref(), Some("- the tests need a server\n- prefers short answers"));
    assert!(took < Duration::from_millis(200), "nobody is waited for: {took:?}");
}

#[test]
fn too_much_work_is_dropped_and_the_end_does_not_wait_for_long() {
    let server = MemoryServer::start(Behaviour::Hang, &[]);
    let few = MemoryLimits { queue: 4, shutdown: Duration::from_millis(400), ..limits() };
    let keeper = crate::setting::keeper(http(&server.url()), few);
    for i in 0..10 {
        keeper.turn_answered(&turn(i, "question"), "answer");
    }
    assert!(count(&keeper, MemoryEvent::Dropped) > 0);
    let began = Instant::now();
    let abandoned = keeper.stop();
    let took = began.elapsed();
    assert!(abandoned.is_stopped && abandoned.n_writes > 0 && abandoned.n_prefetches > 0, "{abandoned:?}");
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    let began = Instant::now();
    drop(keeper);
    assert!(began.elapsed() < Duration::from_millis(500), "what hangs keeps nobody");
}
