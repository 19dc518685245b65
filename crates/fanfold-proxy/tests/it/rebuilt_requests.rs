//! A recorded request is rebuilt with the bytes that the provider received, whatever edits they had.

use std::time::Duration;

use fanfold_proxy::Recall;
use fanfold_testkit::fakes::memory_server::{Behaviour, MemoryServer};
use fanfold_wire::{FENCE, Format};

use crate::memory::{FACT, over_http, proxy_memory, question_body};
use crate::provider_quirks::{rejects_notes, rejects_recall_tool, requires_alternating_roles};
use crate::setting::{Stage, StageOptions, chat, long_chat, outcome, session};

#[tokio::test(flavor = "multi_thread")]
async fn with_a_memory_block() {
    let formats =
        [("chat", Format::Chat), ("anthropic", Format::Anthropic), ("responses", Format::Responses)];
    for (name, format) in formats {
        let server = MemoryServer::start(Behaviour::Normal, &[FACT]);
        let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
        let stage = Stage::new(StageOptions { memory: Some(memory), ..StageOptions::default() }).await;
        let (path, body) = question_body(name, false);
        let response = stage.post(path, body.to_string()).send().await.unwrap();
        let received = stage.received();
        assert!(received[0].contains(FENCE) && received[0].contains(FACT), "{name}");
        stage.assert_rebuilds(&session(&response), format, &received);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_alternating_roles() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    stage.upstream.set_rule(requires_alternating_roles);
    let messages = long_chat(14);
    let mut name = String::new();
    for n in [20, 24, messages.len()] {
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!(outcome(&response), "folded");
        name = session(&response);
    }
    // The first body was refused, and recorded as well.
    assert_eq!(stage.received().len(), 4);
    stage.assert_rebuilds(&name, Format::Chat, &stage.received());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_memory_and_two_rules_of_the_provider() {
    let server = MemoryServer::start(Behaviour::Normal, &["the night run is in src/stage_3.py"]);
    let memory = proxy_memory(over_http(&server), Duration::from_secs(9));
    let recall = Recall::Tool;
    let stage =
        Stage::new(StageOptions { window: 1500, recall, memory: Some(memory), ..StageOptions::default() })
            .await;
    stage.upstream.set_rule(|body| rejects_recall_tool(body).or_else(|| requires_alternating_roles(body)));
    let messages = long_chat(40);
    let mut name = String::new();
    for n in [20, 60, messages.len()] {
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!(response.status(), 200);
        name = session(&response);
    }
    let received = stage.received();
    let last = received.last().unwrap();
    assert!(last.contains(FENCE) && last.contains("<fanfold>") && !last.contains("fanfold_recall"), "{last}");
    stage.assert_rebuilds(&name, Format::Chat, &received);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_every_edit_was_refused() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    stage.upstream.set_rule(rejects_notes);
    let messages = long_chat(14);
    for n in [24, messages.len()] {
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!(outcome(&response), "as it came: not_taken");
        stage.assert_rebuilds(&session(&response), Format::Chat, &stage.received());
    }
    assert_eq!(stage.received().len(), 4, "the second body is sent unchanged at once");
}
