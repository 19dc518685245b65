//! Rules of providers: a refused body is sent again in another form, and finally unchanged.

use fanfold_proxy::Recall;
use fanfold_testkit::fakes::upstream::{Fault, Limit};
use fanfold_wire::{Format, alternate_roles};
use serde_json::{Value, json};

use crate::setting::{Stage, StageOptions, chat, long_chat, outcome};

/// The rule of the templates of Gemma and Mistral.
pub(crate) fn requires_alternating_roles(body: &Value) -> Option<(u16, String)> {
    let roles: Vec<&str> =
        body["messages"].as_array()?.iter().filter_map(|message| message["role"].as_str()).collect();
    let is_bad = roles.windows(2).any(|pair| matches!(pair, ["user", "user"] | ["tool", "user"]));
    is_bad.then(|| (400, "Conversation roles must alternate user/assistant/user/assistant/...".to_owned()))
}

fn rejects_names(body: &Value) -> Option<(u16, String)> {
    let is_named = |message: &Value| message["role"] == "user" && !message["name"].is_null();
    let is_bad = body["messages"].as_array()?.iter().any(is_named);
    is_bad.then(|| (422, "messages.0.user.name: Extra inputs are not permitted".to_owned()))
}

pub(crate) fn rejects_recall_tool(body: &Value) -> Option<(u16, String)> {
    let has = body["tools"].to_string().contains("fanfold_recall");
    has.then(|| (400, "tools.0: unsupported schema".to_owned()))
}

pub(crate) fn rejects_notes(body: &Value) -> Option<(u16, String)> {
    body["messages"].to_string().contains("<fanfold>").then(|| (422, "no".to_owned()))
}

fn bodies(stage: &Stage) -> Vec<String> {
    stage.upstream.seen().iter().map(fanfold_testkit::fakes::upstream::RecordedRequest::text).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_alternate_for_a_provider_that_requires_it() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    stage.upstream.set_rule(requires_alternating_roles);
    let messages = long_chat(14);
    for n in [20, 24, messages.len()] {
        let response = stage.chat(&chat(&messages[..n])).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"), "{n}");
        drop(response.bytes().await.unwrap());
    }
    let seen = bodies(&stage);
    assert_eq!(seen.len(), 4, "the rule is learnt once");
    assert_eq!(alternate_roles(&seen[0], Format::Chat).as_ref(), Some(&seen[1]), "the texts are the same");
    // Prompts are contained verbatim, and the stored messages are complete.
    let first = messages[1]["content"].as_str().unwrap();
    for body in &seen[1..] {
        let body: Value = serde_json::from_str(body).unwrap();
        let user = body["messages"].as_array().unwrap().iter().find(|message| message["role"] == "user");
        let text = user.unwrap()["content"].as_str().unwrap();
        assert!(text.starts_with(&format!("{first}\n\n<fanfold>\n")), "{text}");
    }
    // Another model of the same provider may have no such rule.
    let other = chat(&messages).replacen("\"m\"", "\"n\"", 1);
    assert_eq!(outcome(&stage.chat(&other).await), "folded");
    assert_eq!(bodies(&stage).len(), 6);
    assert_eq!(stage.meter.status().totals.as_it_came.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn template_errors_with_status_500_are_retried_and_others_forwarded() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    let words = "Error: Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...";
    stage.upstream.set_rule(move |body| requires_alternating_roles(body).map(|_| (500, words.to_owned())));
    let body = chat(&long_chat(12));
    assert_eq!(outcome(&stage.chat(&body).await), "folded");
    assert_eq!(bodies(&stage).len(), 2);
    stage.upstream.fault(Fault::Status(500));
    let response = stage.chat(&body).await;
    assert_eq!(response.status(), 500);
    assert!(response.text().await.unwrap().contains("Internal server error"));
    assert_eq!(bodies(&stage).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn notes_have_no_names() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    stage.upstream.set_rule(rejects_names);
    let response = stage.chat(&chat(&long_chat(12))).await;
    assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"));
    assert_eq!(bodies(&stage).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tool_is_removed_for_a_provider_that_rejects_it() {
    let mut stage =
        Stage::new(StageOptions { window: 500, recall: Recall::Tool, ..StageOptions::default() }).await;
    stage.upstream.set_rule(rejects_recall_tool);
    let mut messages = long_chat(14);
    for (n, n_seen, expected) in [(4, 2, "whole"), (6, 3, "whole"), (26, 4, "folded")] {
        let body = chat(&messages[..n]);
        let response = stage.chat(&body).await;
        assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, expected), "{n}");
        drop(response.bytes().await.unwrap());
        let seen = bodies(&stage);
        assert_eq!(seen.len(), n_seen, "the rule is learnt once");
        assert!(expected == "folded" || seen.last() == Some(&body), "only the tool is removed");
    }
    let last = bodies(&stage).pop().unwrap();
    assert!(!last.contains("fanfold_recall") && last.contains("get it again"), "{last}");
    // The tool is never offered again, even after a restart has cleared the learnt rules.
    stage.restart().await;
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "folded");
    assert_eq!(bodies(&stage).len(), 5);
    // After two sessions the rule applies to all sessions.
    for (task, n_seen) in [("something else", 7), ("a third thing", 9), ("a fourth", 10)] {
        messages[1] = json!({ "role": "user", "content": task });
        assert_eq!(outcome(&stage.chat(&chat(&messages[..4])).await), "whole");
        assert_eq!(bodies(&stage).len(), n_seen, "{task}");
    }
    assert_eq!(outcome(&stage.chat(&chat(&messages)).await), "folded");
    let last = bodies(&stage).pop().unwrap();
    assert!(!last.contains("fanfold_recall") && last.contains("get it again"), "{last}");
    assert!(stage.meter.status().totals.as_it_came.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_may_have_two_rules() {
    let stage =
        Stage::new(StageOptions { window: 500, recall: Recall::Tool, ..StageOptions::default() }).await;
    stage.upstream.set_rule(|body| rejects_recall_tool(body).or_else(|| requires_alternating_roles(body)));
    let messages = long_chat(14);
    // The attempts: as made, alternating roles, without the tool, both.
    for (n, n_seen) in [(24, 4), (26, 5), (messages.len(), 6)] {
        assert_eq!(outcome(&stage.chat(&chat(&messages[..n])).await), "folded", "{n}");
        assert_eq!(bodies(&stage).len(), n_seen, "{n}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_refused_in_every_form_is_sent_verbatim() {
    let stage = Stage::new(StageOptions { window: 500, ..StageOptions::default() }).await;
    stage.upstream.set_rule(rejects_notes);
    let body = chat(&long_chat(12));
    let response = stage.chat(&body).await;
    assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "as it came: not_taken"));
    let seen = bodies(&stage);
    assert_eq!((seen.len(), seen.last()), (3, Some(&body)));
    drop(response.bytes().await.unwrap());
    crate::memory::until(|| stage.meter.status().totals.tokens.came > 0).await;
    let tokens = stage.meter.status().totals.tokens;
    assert_eq!(tokens.came, tokens.sent, "an unfolded request saves nothing");
    // If that is too long, the client gets the refusal.
    stage.upstream.set_limit(Some(Limit::Bytes(body.len() / 2)));
    let response = stage.chat(&body).await;
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("context_length_exceeded"));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_client_are_forwarded() {
    let stage =
        Stage::new(StageOptions { window: 500, recall: Recall::Tool, ..StageOptions::default() }).await;
    stage.upstream.set_rule(|body| {
        (body["temperature"] == 9).then(|| (400, "temperature must be between 0 and 2".to_owned()))
    });
    let body = chat(&long_chat(12));
    let wrong = body.replacen('{', "{\"temperature\":9,", 1);
    let response = stage.chat(&wrong).await;
    assert_eq!(response.status(), 400);
    assert!(response.text().await.unwrap().contains("temperature must be between"));
    assert_eq!(bodies(&stage).last(), Some(&wrong));
    // No rule was learnt from it.
    assert_eq!(outcome(&stage.chat(&body).await), "folded");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unexplained_refusal_sets_no_limit_if_folding_does_not_help() {
    let stage = Stage::new(StageOptions::default()).await;
    let mut messages = long_chat(140);
    // The attempts: whole, folded harder, alternating roles, verbatim.
    for _ in 0..4 {
        stage.upstream.fault(Fault::Answer(400, String::new()));
    }
    assert_eq!(stage.chat(&chat(&messages)).await.status(), 400);
    assert_eq!(stage.upstream.n_seen(), 4);
    messages.push(json!({ "role": "user", "content": "And now?" }));
    assert_eq!(stage.chat(&chat(&messages)).await.status(), 200);
    assert_eq!(stage.meter.status().sessions[0].room, 100_000, "the room is unchanged");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unexplained_refusal_lowers_the_limit_if_folding_helps() {
    let stage = Stage::new(StageOptions::default()).await;
    let messages = long_chat(140);
    let limit = chat(&messages).len() * 3 / 4;
    stage.upstream.set_rule(move |body| (body.to_string().len() > limit).then(|| (400, String::new())));
    let response = stage.chat(&chat(&messages)).await;
    assert_eq!((response.status().as_u16(), outcome(&response).as_str()), (200, "folded"));
    assert_eq!(stage.upstream.n_seen(), 2);
    // The limit is known for the session.
    let mut more = messages.clone();
    more.push(json!({ "role": "user", "content": "And now?" }));
    assert_eq!(outcome(&stage.chat(&chat(&more)).await), "folded");
    assert_eq!(stage.upstream.n_seen(), 3);
}
