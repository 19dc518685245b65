//! Subagents, as far as their clients report them.

use fanfold_proxy::Host as _;
use fanfold_store::{Relation, SessionId, SessionRow};
use serde_json::json;

use crate::setting::{Stage, StageOptions, chat, long_chat, outcome, session};

/// The session of a request with these headers.
async fn ask(stage: &Stage, task: &str, headers: &[(&str, &str)]) -> SessionRow {
    let mut messages = long_chat(2);
    messages[1] = json!({ "role": "user", "content": task });
    let mut request = stage.post("/v1/chat/completions", chat(&messages));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = request.send().await.unwrap();
    assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "whole"));
    let session = SessionId(session(&response));
    stage.host.open().unwrap().store().session(&session).unwrap().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subagent_session_has_its_starter_as_parent() {
    let stage = Stage::new(StageOptions::default()).await;
    let claude = |agent: &'static str| [("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", agent)];
    let main = ask(&stage, "mend it", &claude("")[..1]).await;
    assert_eq!((main.source.as_str(), &main.parent), ("proxy", &None));
    // A request for a title has the same name and no tools.
    let title = json!({ "model": "m", "messages": [{ "role": "user", "content": "A title, please." }] });
    let request = stage.post("/v1/chat/completions", title.to_string());
    let response = request.header("x-claude-code-session-id", "s").send().await.unwrap();
    assert_ne!(session(&response), main.id.0);
    let sub = ask(&stage, "look around", &claude("a")).await;
    assert_eq!(
        (sub.source.as_str(), &sub.parent),
        ("subagent", &Some((main.id.clone(), Relation::Subagent)))
    );
    assert_eq!(ask(&stage, "look around", &claude("a")).await.id, sub.id, "the session continues");
    let [session, agent] = claude("b");
    let nested = ask(&stage, "look closer", &[session, agent, ("x-claude-code-parent-agent-id", "a")]).await;
    assert_eq!(nested.parent, Some((sub.id, Relation::Subagent)));
    let root = ask(&stage, "by another client", &[("thread-id", "r")]).await;
    let child = ask(&stage, "its part", &[("thread-id", "c"), ("x-codex-parent-thread-id", "r")]).await;
    assert_eq!((child.source.as_str(), child.parent), ("subagent", Some((root.id, Relation::Subagent))));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_parents_are_not_guessed() {
    let stage = Stage::new(StageOptions::default()).await;
    let headers = [("x-claude-code-session-id", "s"), ("x-claude-code-agent-id", "a")];
    let alone = ask(&stage, "look around", &headers).await;
    assert_eq!((alone.source.as_str(), alone.parent), ("subagent", None));
    // A deleted parent is ignored.
    let main = ask(&stage, "mend it", &headers[..1]).await;
    stage.host.open().unwrap().delete(&main.id).unwrap();
    let orphan = ask(&stage, "look elsewhere", &headers).await;
    assert_eq!((orphan.source.as_str(), orphan.parent), ("subagent", None));
}
