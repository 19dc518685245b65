//! Memory: recalled into requests, hidden from clients, recorded in order; with providers that hang, crash, flood
//! and lie.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_core::Tokens;
use fanfold_memory::{MemoryClient, MemoryEvent, MemoryLimits, MemoryProvider, ProviderAddress};
use fanfold_proxy::ProxyMemory;
use fanfold_store::{SessionId, SqliteStore, Store as _};
use fanfold_testkit::fakes::memory_server::{Behaviour, MemoryServer, arguments, environment, serve_stdio};
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply};
use fanfold_wire::{FENCE, FENCE_END};
use serde_json::{Value, json};

use crate::setting::{Stage, StageOptions, chat, json_of, long_chat, outcome, session};

pub(crate) const FACT: &str = "the staging port is 8443";
const DEADLINE: Duration = Duration::from_millis(300);

pub(crate) fn proxy_memory(place: ProviderAddress, deadline: Duration) -> ProxyMemory {
    let limits = MemoryLimits { deadline, call: Duration::from_secs(5), ..MemoryLimits::default() };
    let client = MemoryClient::start(Some(MemoryProvider::new(place)), None, limits, None).unwrap();
    ProxyMemory { client: Arc::new(client), max_tokens: Tokens(200) }
}

pub(crate) fn over_http(server: &MemoryServer) -> ProviderAddress {
    ProviderAddress::Http { url: server.url(), key: None }
}

/// This binary as an MCP server.
fn program(manner: Behaviour, log: &Path) -> ProviderAddress {
    ProviderAddress::Program {
        program: std::env::current_exe().unwrap().display().to_string(),
        arguments: arguments("memory::a_scripted_program"),
        environment: environment(manner, log),
    }
}

#[test]
#[ignore = "a program that other tests start"]
fn a_scripted_program() {
    serve_stdio();
}

/// A model that repeats its last message, including the memory block, before it answers.
fn parrot() -> Script {
    Script::new(|asked| {
        let key = if asked.body.get("input").is_some() { "input" } else { "messages" };
        let last = asked.body[key].as_array().and_then(|all| all.last().cloned()).unwrap_or_default();
        let content = &last["content"];
        let text =
            content.as_str().or_else(|| content.as_array()?.last()?["text"].as_str()).unwrap_or_default();
        let block = text.find(FENCE).map(|at| &text[at..]).unwrap_or_default();
        ScriptedReply { text: format!("Let me see.\n{block}\nIt is 8443."), ..ScriptedReply::default() }
    })
}

pub(crate) fn question_body(format: &str, is_stream: bool) -> (&'static str, Value) {
    let question = "Which port does staging use?";
    match format {
        "chat" => (
            "/v1/chat/completions",
            json!({ "model": "m", "stream": is_stream, "messages": [{ "role": "user", "content": question }] }),
        ),
        "anthropic" => (
            "/v1/messages",
            json!({ "model": "m", "max_tokens": 500, "stream": is_stream, "messages": [{ "role": "user", "content": [
                { "type": "text", "text": question, "cache_control": { "type": "ephemeral" } }] }] }),
        ),
        _ => (
            "/v1/responses",
            json!({ "model": "m", "stream": is_stream, "input": [
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": question }] }] }),
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_added_in_every_format_and_hidden_from_the_client() {
    for format in ["chat", "anthropic", "responses"] {
        for is_stream in [false, true] {
            let server = MemoryServer::start(Behaviour::Normal, &[FACT]);
            let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
            let client = Arc::clone(&memory.client);
            let stage = Stage::new(StageOptions {
                script: parrot(),
                memory: Some(memory),
                ..StageOptions::default()
            })
            .await;
            let (path, body) = question_body(format, is_stream);
            let response = stage.post(path, body.to_string()).send().await.unwrap();
            assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "whole"), "{format}");
            let named = session(&response);
            let seen = stage.upstream.seen().remove(0);
            assert!(seen.violations.is_empty(), "{format}: {:?}", seen.violations);
            let sent: Value = serde_json::from_slice(&seen.body).unwrap();
            let sent_text = seen.text();
            assert!(sent_text.contains(FENCE) && sent_text.contains(FACT), "{sent_text}");
            // The text of the client precedes it, unchanged.
            let list = if format == "responses" { "input" } else { "messages" };
            match format {
                "chat" => {
                    let content = sent[list][0]["content"].as_str().unwrap();
                    assert!(content.starts_with("Which port does staging use?\n\n<fanfold"), "{content}");
                }
                "anthropic" => assert_eq!(sent[list][0]["content"][0], body[list][0]["content"][0]),
                _ => assert_eq!(sent[list][0], body[list][0]),
            }
            let answer = response.text().await.unwrap();
            assert!(answer.contains("Let me see") && answer.contains("8443."), "{format}: {answer}");
            assert!(
                !answer.contains("fanfold-memory") && !answer.contains("Recalled from"),
                "{format}: {answer}"
            );
            // The stored messages do not contain it.
            let store = SqliteStore::open(&stage.host.file).unwrap();
            let row = store.session(&SessionId(named)).unwrap().unwrap();
            let kept = store.node(row.tip.unwrap()).unwrap().unwrap();
            assert!(!format!("{kept:?}").contains("fanfold-memory"), "{kept:?}");
            // The turn is recorded in the form that the client received.
            until(|| client.counts().contains_key(&MemoryEvent::Synced)).await;
            let synced = server.requests_to("sync");
            assert_eq!(synced[0]["user"], "Which port does staging use?", "{format}");
            assert_eq!(synced[0]["assistant"], "Let me see.\n\nIt is 8443.", "{format}");
        }
    }
}

pub(crate) async fn until(is_true: impl Fn() -> bool) {
    for _ in 0..1000 {
        if is_true() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the condition did not become true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_has_one_memory_block_and_its_session_stays_the_same() {
    let server = MemoryServer::start(Behaviour::Normal, &["the night run is in src/stage_3.py", FACT]);
    let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
    let stage =
        Stage::new(StageOptions { window: 900, memory: Some(memory), ..StageOptions::default() }).await;
    let messages = long_chat(14);
    let mut sessions = Vec::new();
    let mut n_folded = 0;
    for n in (2..=messages.len()).step_by(2) {
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!(response.status(), 200);
        n_folded += usize::from(outcome(&response) == "folded");
        sessions.push(session(&response));
    }
    assert!(sessions.iter().all(|one| *one == sessions[0]), "{sessions:?}");
    assert!(n_folded > 3, "{n_folded}");
    let blocks: Vec<String> = stage
        .upstream
        .seen()
        .iter()
        .map(|seen| {
            let text = seen.text();
            assert_eq!(text.matches(FENCE).count(), 1, "{text}");
            let (start, end) = (text.find(FENCE).unwrap(), text.find(FENCE_END).unwrap());
            // The block is at the end of the last message.
            assert_eq!(text[end + FENCE_END.len()..].matches("\"role\"").count(), 0, "{text}");
            text[start..end].to_owned()
        })
        .collect();
    assert!(
        blocks.iter().all(|block| *block == blocks[0]) && blocks[0].contains("src/stage_3.py"),
        "{blocks:?}"
    );
    // One lookup for the turn, and one after each answer for the next turn.
    assert!(server.requests_to("prefetch").len() <= 1 + server.requests_to("sync").len());
    until(|| !server.requests_to("offer").is_empty()).await;
    let offered = server.requests_to("offer")[0]["texts"].to_string();
    assert!(offered.contains("takes batch_"), "folded originals are offered: {offered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn split_keys_are_redacted_in_offered_originals() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
    let stage =
        Stage::new(StageOptions { window: 2_500, memory: Some(memory), ..StageOptions::default() }).await;
    // Assembled here, so that no scanner reports it as a real key.
    let line = |i: usize| format!("{:A>5}{}", i, "kQ9x7Lm2pZt7RvB8nL1aS4dF6gH0jK3".repeat(2));
    let key: String = (0..160).map(|i| format!("{}\n", line(i))).collect();
    let around: String = (0..20).map(|i| format!("entry {i} of the archive is kept in box_{i}\n")).collect();
    let dash = "-".repeat(5);
    let dump = format!("{around}{dash}BEGIN PRIVATE KEY{dash}\n{key}{dash}END PRIVATE KEY{dash}\n{around}");
    let mut messages = long_chat(30);
    let result = messages.iter().position(|message| message["role"] == "tool").unwrap();
    messages[result]["content"] = json!(dump);
    let response = stage.chat(&chat(&messages)).await;
    assert_eq!(outcome(&response), "folded");
    until(|| !server.requests_to("offer").is_empty()).await;
    let offered: String =
        server.requests_to("offer").iter().map(|offer| offer["texts"].to_string()).collect();
    assert!(offered.contains("of the archive is kept"), "{offered}");
    assert!(offered.contains("[redacted: private key]"), "{offered}");
    assert!(!offered.contains("kQ9x7Lm2"), "{offered}");
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_recorded_in_order() {
    let server = MemoryServer::start(Behaviour::Slow(5), &[]);
    let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
    let client = Arc::clone(&memory.client);
    let stage = Stage::new(StageOptions { memory: Some(memory), ..StageOptions::default() }).await;
    let mut messages = vec![];
    for i in 0..12 {
        messages.push(json!({ "role": "user", "content": format!("question {i}") }));
        let answer = json_of(stage.chat(&chat(&messages)).await).await;
        messages.push(answer["choices"][0]["message"].clone());
    }
    let abandoned = tokio::task::spawn_blocking(move || client.stop()).await.unwrap();
    assert_eq!(abandoned.n_writes, 0);
    let order: Vec<Value> = server.requests_to("sync").iter().map(|body| body["user"].clone()).collect();
    let expected: Vec<Value> = (0..12).map(|i| format!("question {i}").into()).collect();
    assert_eq!(order, expected);
    // The provider sees one conversation.
    let sessions: std::collections::BTreeSet<String> =
        server.requests_to("sync").iter().map(|body| body["session"].to_string()).collect();
    assert_eq!(sessions.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_call_does_not_end_a_turn() {
    let server = MemoryServer::start(Behaviour::Slow(5), &[]);
    let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
    let client = Arc::clone(&memory.client);
    let script = Script::new(|asked| match asked.n_calls {
        0 => ScriptedReply {
            text: "Let me look.".into(),
            calls: vec![("read".into(), json!({}))],
            ..ScriptedReply::default()
        },
        _ => ScriptedReply { text: "It is 8443.".into(), ..ScriptedReply::default() },
    });
    let stage = Stage::new(StageOptions { memory: Some(memory), script, ..StageOptions::default() }).await;
    let mut messages = vec![json!({ "role": "user", "content": "Which port?" })];
    let made = json_of(stage.chat(&chat(&messages)).await).await["choices"][0]["message"].clone();
    let id = made["tool_calls"][0]["id"].clone();
    messages.extend([made, json!({ "role": "tool", "tool_call_id": id, "content": "port: 8443" })]);
    json_of(stage.chat(&chat(&messages)).await).await;
    tokio::task::spawn_blocking(move || client.stop()).await.unwrap();
    let answers: Vec<Value> =
        server.requests_to("sync").iter().map(|body| body["assistant"].clone()).collect();
    assert_eq!(answers, [json!("It is 8443.")]);
}

/// The duration of a request up to the last byte of its response.
async fn took(stage: &Stage, question: &str) -> Duration {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": question }] }).to_string();
    let began = Instant::now();
    let response = stage.chat(&body).await;
    assert_eq!(response.status(), 200);
    let answer = response.text().await.unwrap();
    assert!(answer.contains("It is done."), "{answer}");
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn faulty_memory_providers_delay_a_turn_by_their_deadline_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let without = Stage::new(StageOptions::default()).await;
    took(&without, "warm up").await;
    let mut usual = Duration::ZERO;
    for i in 0..5 {
        usual = usual.max(took(&without, &format!("question {i}")).await);
    }
    let mut report = String::new();
    for manner in [Behaviour::Hang, Behaviour::Crash, Behaviour::Flood, Behaviour::Lie] {
        let server = MemoryServer::start(manner, &[FACT]);
        let log = folder.path().join("log");
        let places = [
            over_http(&server),
            ProviderAddress::Mcp { url: server.mcp_url(), key: None },
            program(manner, &log),
        ];
        for place in places {
            let name = format!(
                "{manner:?} {}",
                if let ProviderAddress::Program { .. } = place { "stdio" } else { "http" }
            );
            let memory = proxy_memory(place, DEADLINE);
            let stage = Stage::new(StageOptions { memory: Some(memory), ..StageOptions::default() }).await;
            let mut most = Duration::ZERO;
            for i in 0..4 {
                most = most.max(took(&stage, &format!("question {i} about the staging port")).await);
            }
            report.push_str(&format!(
                "{name}: {} ms at most, {} ms without\n",
                most.as_millis(),
                usual.as_millis()
            ));
            // A busy machine adds some time; without the deadline this would take at least five seconds.
            assert!(most <= usual + DEADLINE + Duration::from_secs(1), "{report}");
            assert!(stage.upstream.seen().iter().all(|seen| !seen.text().contains(FENCE)), "{name}");
        }
    }
    if std::env::var_os("FANFOLD_MANY").is_some() {
        eprintln!("{report}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fold_deadline_applies_to_memory() {
    let server = MemoryServer::start(Behaviour::Hang, &[]);
    let memory = proxy_memory(over_http(&server), Duration::from_secs(60));
    let limits = fanfold_proxy::Limits { deadline: Duration::from_millis(800), ..Default::default() };
    let stage = Stage::new(StageOptions { memory: Some(memory), limits, ..StageOptions::default() }).await;
    let response = stage.chat(&chat(&long_chat(1)[..2])).await;
    assert_eq!(outcome(&response), "whole", "the lookup does not delay the fold");
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_without_quoted_memory_are_forwarded_verbatim() {
    let server = MemoryServer::start(Behaviour::Normal, &[]);
    let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
    let with = Stage::new(StageOptions { memory: Some(memory), ..StageOptions::default() }).await;
    for (format, is_stream) in [("chat", true), ("anthropic", true), ("responses", true), ("chat", false)] {
        let (path, body) = question_body(format, is_stream);
        let through = with.post(path, body.to_string()).send().await.unwrap();
        let length = through.headers().get("content-length").cloned();
        let through = through.text().await.unwrap();
        let direct = format!("{}{path}", with.upstream.url());
        let direct = with.client.post(direct).body(body.to_string()).send().await.unwrap();
        assert_eq!(length.is_some(), !is_stream);
        let same = |text: &str| text.chars().filter(|c| !c.is_ascii_digit()).collect::<String>();
        // Ids and times differ from call to call.
        assert_eq!(same(&through).len(), same(&direct.text().await.unwrap()).len(), "{format}");
        assert!(through.contains("It is done."));
    }
}
