//! Turns: text is recalled before the request, written after the answer, in order, up to the end of the conversation.

use std::time::{Duration, Instant};

use fanfold_memory::{
    EntryChange, MemoryClient, MemoryEvent, MemoryFile, MemoryFiles, MemoryLimits, MemoryTurn,
};
use fanfold_testkit::fakes::memory_server::{Behaviour, MemoryServer};
use serde_json::json;

use crate::setup::{count, http, limits, mcp, program, recall, turn, until};

const FACTS: [&str; 2] = ["the staging port is 8443", "releases are cut on Tuesdays"];

/// Generous timeouts for tests that do not depend on time.
fn long_timeouts() -> MemoryLimits {
    MemoryLimits { deadline: Duration::from_secs(20), call: Duration::from_secs(20), ..limits() }
}

#[test]
fn all_providers_recall_and_write() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let server = MemoryServer::start(Behaviour::Normal, &FACTS);
    let addresses = [http(&server.url()), mcp(&server.mcp_url()), program(Behaviour::Normal, &log)];
    for address in addresses {
        let name = format!("{address:?}");
        let client = crate::setup::client(address, long_timeouts());
        let first = turn(1, "Which port does staging use?");
        let (text, _) = recall(&client, &first);
        assert_eq!(text.as_deref(), Some("- the staging port is 8443"), "{name}");
        client.turn_answered(&first, "It is 8443.");
        assert!(until(|| count(&client, MemoryEvent::Synced) == 1), "{name}");
        let unfinished = client.stop();
        assert_eq!((unfinished.n_writes, unfinished.is_stopped), (0, false), "{name}");
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
fn writes_are_ordered_and_the_end_is_last() {
    let server = MemoryServer::start(Behaviour::Slow(3), &[]);
    let client = client(&server);
    for i in 0..20 {
        let asked = turn(i, &format!("question {i}"));
        client.turn_answered(&asked, &format!("answer {i}"));
        if i % 5 == 0 {
            client.offer_folded(&asked, &[format!("folded {i}")]);
        }
    }
    let unfinished = client.stop();
    assert_eq!((unfinished.n_writes, unfinished.is_stopped), (0, false));
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
fn an_idle_conversation_ends_and_may_continue() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let brief = MemoryLimits { idle: Duration::from_millis(60), ..long_timeouts() };
    let client = crate::setup::client(http(&server.url()), brief);
    let n_ended = || server.requests_to("end").len();
    client.turn_answered(&turn(1, "question 1"), "answer 1");
    assert!(until(|| n_ended() == 1), "the idle conversation was ended");
    assert_eq!(server.requests_to("end"), [json!({ "session": "this-talk" })]);
    client.turn_answered(&turn(2, "question 2"), "answer 2");
    assert!(until(|| n_ended() == 2), "it continued and was ended again");
    client.stop();
    assert_eq!(n_ended(), 2, "it is ended once");
    let order: Vec<String> = server.requests().into_iter().map(|(route, _)| route).collect();
    let order: Vec<&str> = order.iter().map(String::as_str).filter(|route| *route != "prefetch").collect();
    assert_eq!(order, ["sync", "end", "sync", "end"]);
}

#[test]
fn requests_keep_a_conversation_active() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let idle = Duration::from_millis(500);
    let client = crate::setup::client(http(&server.url()), MemoryLimits { idle, ..long_timeouts() });
    client.turn_answered(&turn(1, "question 1"), "answer 1");
    let (mut last, mut longest) = (Instant::now(), Duration::ZERO);
    // The requests of one long turn, which is not answered yet.
    for _ in 0..9 {
        recall(&client, &turn(2, "question 2"));
        longest = longest.max(last.elapsed());
        last = Instant::now();
        std::thread::sleep(Duration::from_millis(80));
    }
    // On a busy machine a sleep may exceed the idle time.
    let was_active = longest.max(last.elapsed()) < idle;
    assert!(!was_active || server.requests_to("end").is_empty());
}

#[test]
fn above_the_limit_the_longest_idle_conversation_is_ended() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let client =
        crate::setup::client(http(&server.url()), MemoryLimits { conversations: 2, ..long_timeouts() });
    for name in ["a", "b", "a", "c"] {
        client.turn_answered(&MemoryTurn { conversation: name.to_owned(), ..turn(1, "question") }, "answer");
    }
    assert!(until(|| server.requests_to("end").len() == 1));
    assert_eq!(server.requests_to("end"), [json!({ "session": "b" })], "it was idle longest");
    client.stop();
    let ended: Vec<String> =
        server.requests_to("end").iter().map(|end| end["session"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ended, ["b", "a", "c"], "the others are ended by `stop`");
}

#[test]
fn all_requests_of_a_turn_get_the_same_text() {
    let server = MemoryServer::start(Behaviour::Normal, &FACTS);
    let client = client(&server);
    let first = turn(1, "the staging port?");
    let (text, _) = recall(&client, &first);
    server.set_behaviour(Behaviour::Hang);
    for _ in 0..3 {
        let (again, took) = recall(&client, &first);
        assert_eq!(again, text);
        assert!(took < Duration::from_millis(100), "{took:?}");
    }
    assert_eq!(server.requests_to("prefetch").len(), 1, "only one search was sent");
}

#[test]
fn a_prefetched_text_is_used_when_a_search_is_late() {
    let server = MemoryServer::start(Behaviour::Normal, &FACTS);
    let client = crate::setup::client(http(&server.url()), limits());
    client.turn_answered(&turn(1, "the staging port?"), "8443");
    assert!(until(|| server.requests_to("prefetch").len() == 1));
    // Wait for the answer to arrive.
    std::thread::sleep(Duration::from_millis(100));
    server.set_behaviour(Behaviour::Hang);
    let (text, took) = recall(&client, &turn(2, "and the other port?"));
    assert_eq!(text.as_deref(), Some("- the staging port is 8443"));
    assert!(took < Duration::from_millis(600), "{took:?}");
}

#[test]
fn secrets_and_client_text_are_not_sent() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let client = client(&server);
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let asked = format!("<system-reminder>be brief</system-reminder>push with {secret}");
    let pushing = turn(1, &asked);
    recall(&client, &pushing);
    client.turn_answered(&pushing, &format!("pushed with {secret}"));
    client.offer_folded(&pushing, &[format!("token {secret}")]);
    client.stop();
    let all = serde_json::to_string(&server.requests()).unwrap();
    assert!(!all.contains(&secret) && !all.contains("be brief"), "{all}");
    assert!(all.matches("[redacted").count() >= 4, "{all}");
    // Turns without user text or without an answer are not written.
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let quiet = self::client(&server);
    quiet.turn_answered(&turn(1, "<system-reminder>x</system-reminder>"), "done");
    quiet.turn_answered(&turn(2, "hello"), "  ");
    quiet.stop();
    assert_eq!(server.requests(), []);
}

fn client(server: &MemoryServer) -> MemoryClient {
    crate::setup::client(http(&server.url()), long_timeouts())
}

#[test]
fn memory_files_are_recalled_without_a_provider() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryFiles::new(folder.path());
    memory.change(MemoryFile::Notes, &[EntryChange::Add("the tests need a server".to_owned())]).unwrap();
    memory.change(MemoryFile::User, &[EntryChange::Add("prefers short answers".to_owned())]).unwrap();
    let alone = MemoryClient::start(None, Some(memory), limits(), None).unwrap();
    let (text, took) = recall(&alone, &turn(1, "hello there"));
    assert_eq!(text.as_deref(), Some("- the tests need a server\n- prefers short answers"));
    assert!(took < Duration::from_millis(200), "nothing is awaited: {took:?}");
}

#[test]
fn a_full_queue_drops_jobs_and_stop_is_limited_in_time() {
    let server = MemoryServer::start(Behaviour::Hang, &[]);
    let few = MemoryLimits { queue: 4, shutdown: Duration::from_millis(400), ..limits() };
    let client = crate::setup::client(http(&server.url()), few);
    for i in 0..10 {
        client.turn_answered(&turn(i, "question"), "answer");
    }
    assert!(count(&client, MemoryEvent::Dropped) > 0);
    let began = Instant::now();
    let unfinished = client.stop();
    let took = began.elapsed();
    assert!(
        unfinished.is_stopped && unfinished.n_writes > 0 && unfinished.n_prefetches > 0,
        "{unfinished:?}"
    );
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    let began = Instant::now();
    drop(client);
    assert!(began.elapsed() < Duration::from_millis(500), "a hanging search does not delay drop");
}
