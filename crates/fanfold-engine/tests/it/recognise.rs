//! Which session a body belongs to: continuations, retries, edits, rewinds and new conversations.

use std::sync::Arc;

use fanfold_engine::{MachineClock, RequestInput, SessionEngine, SessionMatch};
use fanfold_store::{SessionId, SqliteStore, Store};
use fanfold_wire::Format;
use serde_json::{Value, json};

use crate::cache_marks::{agent_body, agent_messages, marked};
use crate::faulty_store::{FaultTiming, FaultyStore};
use crate::setup::{chat, engine_on, long_chat, terms};

/// A client that does not name its sessions.
struct Client {
    store: Arc<dyn Store>,
    engine: SessionEngine,
    format: Format,
}

impl Client {
    fn new(format: Format) -> Client {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
        Client { engine: engine_on(Arc::clone(&store)), store, format }
    }

    /// Another process on the same store.
    fn restarted(&self) -> SessionEngine {
        SessionEngine::new(Arc::clone(&self.store), Arc::new(MachineClock))
    }

    fn recognise(&self, body: &str) -> SessionMatch {
        let recognised = self.engine.recognise(body, self.format).unwrap();
        let without_cache = self.restarted().recognise(body, self.format).unwrap();
        assert_eq!(recognised, without_cache, "a process without a cache has the same result");
        recognised
    }

    /// Sends a body in the session that it belongs to.
    fn send(&self, body: &str) -> (SessionId, String) {
        let session = self.engine.session_for(&self.recognise(body)).unwrap();
        let terms = fanfold_engine::Terms { format: Some(self.format), ..terms("fanfold", 400) };
        let answer = self.engine.request(&RequestInput::new(&session, body, &terms, "test"));
        assert!(answer.is_stored, "{:?}", answer.fold);
        (session, answer.body)
    }

    fn n_sessions(&self) -> usize {
        self.store.sessions(&Default::default()).unwrap().len()
    }
}

fn forks(from: &SessionId, n_messages: u32) -> SessionMatch {
    SessionMatch::Forks { from: from.clone(), n_messages }
}

#[test]
fn a_growing_conversation_with_retries_is_one_session() {
    let client = Client::new(Format::Anthropic);
    let messages = agent_messages(20);
    let (session, _) = client.send(&agent_body(&marked(&messages[..1])));
    for n in (3..messages.len()).step_by(2) {
        let body = agent_body(&marked(&messages[..n]));
        let (this, sent) = client.send(&body);
        assert_eq!(this, session, "after {n}");
        assert_eq!(client.send(&body), (this, sent), "a retry after {n}");
    }
    assert_eq!(client.n_sessions(), 1);
}

#[test]
fn a_restart_does_not_change_the_sent_bytes() {
    let (client, other) = (Client::new(Format::Anthropic), Client::new(Format::Anthropic));
    let messages = agent_messages(40);
    let mut n_folded = 0;
    for n in (1..messages.len()).step_by(4) {
        let body = agent_body(&marked(&messages[..n]));
        other.engine.clear_cache();
        let (sent, again) = (client.send(&body).1, other.send(&body).1);
        assert_eq!(sent, again, "after {n}");
        n_folded += usize::from(sent != body);
    }
    assert!(n_folded > 5 && client.n_sessions() == 1 && other.n_sessions() == 1, "{n_folded}");
}

#[test]
fn an_edit_and_a_rewind_become_forks() {
    let client = Client::new(Format::Chat);
    let messages = long_chat(12);
    let (session, _) = client.send(&chat(&messages[..20]));
    // A rewind: the first messages of the session.
    assert_eq!(client.recognise(&chat(&messages[..10])), forks(&session, 10));
    let (rewound, _) = client.send(&chat(&messages[..10]));
    assert_ne!(rewound, session);
    assert_eq!(client.recognise(&chat(&messages[..10])), SessionMatch::Continues(rewound.clone()));
    // An edit: a different message after the first messages.
    let mut edited = messages[..12].to_vec();
    edited.push(json!({ "role": "user", "content": "No, look elsewhere." }));
    assert_eq!(client.recognise(&chat(&edited)), forks(&session, 12));
    let (fork, _) = client.send(&chat(&edited));
    edited.push(json!({ "role": "assistant", "content": "Then there." }));
    assert_eq!(client.recognise(&chat(&edited)), SessionMatch::Continues(fork));
    // The original session is unchanged.
    assert_eq!(client.recognise(&chat(&messages[..24])), SessionMatch::Continues(session));
    assert_eq!(client.n_sessions(), 3);
}

#[test]
fn a_fork_begins_with_the_bytes_in_the_providers_cache() {
    let client = Client::new(Format::Anthropic);
    let messages = agent_messages(42);
    let n = messages.len() - 4;
    let (_, sent) = client.send(&agent_body(&messages[..n]));
    client.send(&agent_body(&messages));
    let mut edited = messages[..n + 2].to_vec();
    edited.push(json!({ "role": "assistant", "content": [{ "type": "text", "text": "I see." }] }));
    edited.push(json!({ "role": "user", "content": [{ "type": "text", "text": "Go on." }] }));
    let (_, second) = client.send(&agent_body(&edited));
    let end = sent.rfind("],\"max_tokens\"").unwrap();
    assert!(sent != agent_body(&messages[..n]), "it is folded");
    assert_eq!(&second[..end], &sent[..end]);
}

#[test]
fn bodies_that_share_only_an_unanswered_prompt_are_separate_sessions() {
    let client = Client::new(Format::Anthropic);
    let messages = agent_messages(4);
    let (session, _) = client.send(&agent_body(&messages[..1]));
    // The same prompt with other instructions, for example to get a title.
    let title = json!({ "model": "m", "system": "Write a title.", "messages": &messages[..1] }).to_string();
    assert_eq!(client.recognise(&title), SessionMatch::New);
    let (titled, _) = client.send(&title);
    assert_ne!(titled, session);
    // Both continue as separate sessions.
    assert_eq!(client.recognise(&agent_body(&messages[..3])), SessionMatch::Continues(session.clone()));
    assert_eq!(client.recognise(&title), SessionMatch::Continues(titled));
    client.send(&agent_body(&messages));
    // The same prompt again, long after its first answer.
    assert_eq!(client.recognise(&agent_body(&messages[..1])), SessionMatch::New);
    // Changed instructions after the first answer do not start a new session.
    let other = agent_body(&messages).replace("Be careful.", "Be quick.");
    assert_eq!(client.recognise(&other), SessionMatch::Continues(session));
}

#[test]
fn sessions_that_share_their_system_message_are_not_related() {
    let client = Client::new(Format::Chat);
    let messages = long_chat(3);
    client.send(&chat(&messages));
    let other = [messages[0].clone(), json!({ "role": "user", "content": "Something else." })];
    assert_eq!(client.recognise(&chat(&other)), SessionMatch::New);
}

#[test]
fn workers_that_share_a_beginning_become_separate_sessions() {
    let client = Client::new(Format::Anthropic);
    let messages = agent_messages(12);
    let (session, _) = client.send(&agent_body(&messages[..9]));
    let worker = |name: &str, n: usize| {
        let mut messages = messages[..9].to_vec();
        for i in 0..n {
            messages.push(json!({ "role": "assistant", "content": format!("{name} {i}") }));
            messages.push(json!({ "role": "user", "content": format!("on, {name} {i}") }));
        }
        agent_body(&messages)
    };
    let firsts: Vec<SessionId> = ["a", "b", "c"].iter().map(|name| client.send(&worker(name, 1)).0).collect();
    assert_eq!(firsts[0], session, "the first one continues the session");
    assert!(firsts[1] != session && firsts[2] != session && firsts[1] != firsts[2]);
    for n in 2..5 {
        for (name, first) in ["a", "b", "c"].iter().zip(&firsts) {
            assert_eq!(client.send(&worker(name, n)).0, *first);
        }
    }
}

#[test]
fn a_list_with_a_leading_summary_is_new_and_one_with_the_old_beginning_forks() {
    let client = Client::new(Format::Responses);
    let item = |role: &str, text: String| json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] });
    let body = |items: &[Value]| json!({ "model": "m", "input": items, "store": false }).to_string();
    let mut items = Vec::new();
    for i in 0..10 {
        items.push(item("user", format!("ask {i}")));
        items.push(item("assistant", format!("answer {i}")));
    }
    let (session, _) = client.send(&body(&items));
    let compacted = [item("user", "Summary: ten answers.".to_owned()), items[19].clone()];
    assert_eq!(client.recognise(&body(&compacted)), SessionMatch::New);
    let shortened = [&items[..4], &compacted[..1]].concat();
    assert_eq!(client.recognise(&body(&shortened)), forks(&session, 4));
    let continued = json!({ "model": "m", "input": &items[..2], "previous_response_id": "r1" }).to_string();
    assert_eq!(client.recognise(&continued), SessionMatch::New);
}

#[test]
fn a_body_in_another_format_is_a_new_session() {
    let client = Client::new(Format::Chat);
    let messages =
        [json!({ "role": "user", "content": "hi" }), json!({ "role": "assistant", "content": "hello" })];
    let (session, _) = client.send(&chat(&messages));
    assert_eq!(client.recognise(&chat(&messages)), SessionMatch::Continues(session));
    assert_eq!(client.engine.recognise(&chat(&messages), Format::Anthropic).unwrap(), SessionMatch::New);
}

#[test]
fn abandoned_messages_do_not_identify_a_session() {
    let client = Client::new(Format::Chat);
    let messages = long_chat(12);
    let (session, _) = client.send(&chat(&messages[..20]));
    client.engine.rewind(&session, fanfold_engine::RewindTarget::Length(8)).unwrap();
    // All messages are in the store, but the tip of the session is the eighth.
    assert_eq!(client.recognise(&chat(&messages[..20])), SessionMatch::Continues(session.clone()));
    assert_eq!(client.recognise(&chat(&messages[..5])), forks(&session, 5));
    // A rotation replaces the session that ended.
    let rotated = client.engine.rotate(&session).unwrap();
    assert_eq!(client.recognise(&chat(&messages[..9])), SessionMatch::Continues(rotated));
}

#[test]
fn an_equal_request_in_between_does_not_fork_the_session() {
    let client = Client::new(Format::Anthropic);
    let messages = agent_messages(9);
    let (session, _) = client.send(&agent_body(&marked(&messages[..3])));
    let body = agent_body(&marked(&messages[..7]));
    let store = Arc::new(FaultyStore::new(Arc::clone(&client.store), usize::MAX, FaultTiming::Before));
    let slow = SessionEngine::new(Arc::clone(&store) as Arc<dyn Store>, Arc::new(MachineClock));
    let (other, same_body, same_session) = (client.restarted(), body.clone(), session.clone());
    *store.before_session.lock().unwrap() = Some(Box::new(move || {
        let terms = fanfold_engine::Terms { format: Some(Format::Anthropic), ..terms("fanfold", 400) };
        let answer = other.request(&RequestInput::new(&same_session, &same_body, &terms, "test"));
        assert!(answer.is_stored, "{:?}", answer.fold);
    }));
    assert_eq!(slow.recognise(&body, Format::Anthropic).unwrap(), SessionMatch::Continues(session));
}

#[test]
fn concurrent_equal_requests_get_equal_bytes() {
    // The threads wait for each other's lock, so this needs the real clock.
    let store: Arc<dyn Store> = Arc::new(SqliteStore::in_memory());
    let engine = SessionEngine::new(Arc::clone(&store), Arc::new(MachineClock));
    let client = Client { engine, store, format: Format::Anthropic };
    let messages = agent_messages(60);
    let (session, _) = client.send(&agent_body(&messages[..1]));
    let terms = fanfold_engine::Terms { format: Some(Format::Anthropic), ..terms("fanfold", 400) };
    for n in (3..100).step_by(2) {
        let body = agent_body(&marked(&messages[..n]));
        let sent: Vec<String> = std::thread::scope(|scope| {
            let send = || {
                let recognised = client.engine.recognise(&body, Format::Anthropic).unwrap();
                assert_eq!(recognised, SessionMatch::Continues(session.clone()));
                client.engine.request(&RequestInput::new(&session, &body, &terms, "test"))
            };
            let threads = [scope.spawn(send), scope.spawn(send)];
            threads.map(|thread| thread.join().unwrap()).map(|answer| {
                assert!(answer.is_stored && answer.sizes.is_some(), "{:?}", answer.fold);
                answer.body
            })
        })
        .into();
        assert_eq!(sent[0], sent[1], "after {n}");
    }
    assert_eq!(client.n_sessions(), 1);
    assert_eq!(client.engine.check_handles(&session).unwrap().1, Vec::<String>::new());
}
