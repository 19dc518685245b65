//! The routes conform to their OpenAPI description.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use fanfold_core::{Budget, Policy, Tokens, Words};
use fanfold_engine::{FoldOutcome, MachineClock, RequestInput, SessionEngine, Terms};
use fanfold_store::{SessionId, SqliteStore};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::openapi::describe;
use super::route::{Method, ParameterLocation, ResponseShape};
use super::table::ROUTES;
use super::{Engines, PATH, router};

/// An engine with a session that was folded.
fn engine() -> Arc<SessionEngine> {
    let engine = SessionEngine::new(Arc::new(SqliteStore::in_memory()), Arc::new(MachineClock));
    let terms = Terms {
        engine: fanfold_core::EngineFactory::FANFOLD,
        policy: Policy::fanfold(),
        budget: Budget::of_window(Tokens(600)),
        prices: None,
        counter: &Words,
        format: None,
        focus: String::new(),
        assumed: Vec::new(),
        described: "words".to_owned(),
    };
    let mut messages = vec![json!({ "role": "user", "content": "Why does the kiln stay cold?" })];
    for i in 0..40 {
        let function =
            json!({ "name": "read", "arguments": json!({ "path": format!("kiln_{i}.py") }).to_string() });
        let calls = json!([{ "id": format!("c{i}"), "type": "function", "function": function }]);
        let lines: String = (0..9).map(|n| format!("sensor {i} row {n} says {}\n", n * i)).collect();
        messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
        messages.push(json!({ "role": "tool", "tool_call_id": format!("c{i}"), "content": lines }));
    }
    let body = json!({ "model": "m", "messages": messages }).to_string();
    let session = SessionId("kiln".to_owned());
    let answer = engine.request(&RequestInput::new(&session, &body, &terms, "test"));
    assert!(matches!(answer.fold, FoldOutcome::Folded(_)), "{:?}", answer.fold);
    engine.pin(&session, 2, true).unwrap();
    Arc::new(engine)
}

fn engines(engine: &Arc<SessionEngine>) -> Engines {
    let engine = Arc::clone(engine);
    Arc::new(move || Ok(Arc::clone(&engine)))
}

/// Sends a request. Returns the status and the body.
async fn send_request(engines: &Engines, method: &str, path: &str, body: &str) -> (u16, String) {
    let request = Request::builder()
        .method(method)
        .uri(format!("{PATH}{path}"))
        .body(Body::from(body.to_owned()))
        .unwrap();
    let response = router(Arc::clone(engines)).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// The violations of a schema of the description.
fn schema_violations(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.trim_start_matches('#').to_owned();
        return schema_violations(
            describe().pointer(&pointer).unwrap_or_else(|| panic!("{name} is not in the description")),
            value,
            at,
        );
    }
    let mut found = Vec::new();
    let has_type = |kind: &str| match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type: {other}"),
    };
    let is_valid = match &schema["type"] {
        Value::String(kind) => has_type(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(has_type),
        _ => true,
    };
    let is_listed = schema["enum"].as_array().is_none_or(|all| all.contains(value));
    if !is_valid || !is_listed || schema.get("const").is_some_and(|only| only != value) {
        found.push(format!("{at}: {value} does not match {schema}"));
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        found.extend(schema_violations(&schema["items"], item, &format!("{at}[{i}]")));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            found.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        match schema["properties"].get(name) {
            Some(known) => found.extend(schema_violations(known, field, &format!("{at}.{name}"))),
            None if schema["additionalProperties"] == json!(false) => {
                found.push(format!("{at}.{name} is not described"));
            }
            None => {}
        }
    }
    found
}

#[tokio::test]
async fn responses_match_the_description() {
    let engine = engine();
    let engines = engines(&engine);
    let handle = engine.handles(&SessionId("kiln".to_owned())).unwrap().remove(0);
    let described: Value = {
        let (status, body) = send_request(&engines, "GET", "/openapi.json", "").await;
        assert_eq!(status, 200);
        serde_json::from_str(&body).unwrap()
    };
    let mut n_described = 0;
    for (path, methods) in described["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            n_described += 1;
            let concrete_path =
                path.replace("{session}", "kiln").replace("{handle}", handle.trim_start_matches('#'));
            assert!(!concrete_path.contains('{'), "{concrete_path}");
            let (status, body) = send_request(&engines, &method.to_uppercase(), &concrete_path, "").await;
            assert_eq!(status, 200, "{method} {path}: {body}");
            let content = &operation["responses"]["200"]["content"];
            if content["text/plain"].is_object() {
                assert!(body.contains("sensor"), "{body}");
                continue;
            }
            let value: Value = serde_json::from_str(&body).unwrap();
            let wrong = schema_violations(&content["application/json"]["schema"], &value, "");
            assert!(wrong.is_empty(), "{method} {path}: {wrong:#?}");
        }
    }
    assert_eq!(n_described, ROUTES.len());
}

#[tokio::test]
async fn errors_have_a_hint() {
    let engine = engine();
    let engines = engines(&engine);
    let schema = json!({ "$ref": "#/components/schemas/Error" });
    for (method, path, body, expected) in [
        ("GET", "/sessions/nobody", "", 404),
        ("GET", "/sessions/nobody/folds", "", 404),
        ("POST", "/sessions/nobody/fork", "", 404),
        ("POST", "/sessions/kiln/fork", "not JSON", 400),
        ("POST", "/sessions/kiln/fork", r#"{"at": 99999}"#, 400),
        ("POST", "/sessions/kiln/fork", r#"{"where": 1}"#, 400),
        ("GET", "/sessions?limit=many", "", 400),
        ("GET", "/sessions?limit=-1", "", 400),
        ("GET", "/sessions?lmit=1", "", 400),
        ("GET", "/recall/000000", "", 404),
        ("GET", "/recall/words", "", 400),
        ("GET", "/recall/000000?session=kiln", "", 404),
        ("GET", "/recall/000000?lines=1&search=x", "", 400),
        ("GET", "/search?session_id=nobody", "", 404),
        ("GET", "/search?query=x&role_filter=king", "", 400),
        ("GET", "/search?query=x&since=yesterday", "", 400),
        ("GET", "/nothing", "", 404),
    ] {
        let (status, answer) = send_request(&engines, method, path, body).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
        let value: Value = serde_json::from_str(&answer).unwrap();
        assert!(schema_violations(&schema, &value, "").is_empty(), "{method} {path}: {answer}");
        assert!(!value["error"]["hint"].as_str().unwrap().is_empty(), "{path}");
    }
    let without_store: Engines = Arc::new(|| Err("the store is gone".to_owned()));
    let (status, answer) = send_request(&without_store, "GET", "/sessions", "").await;
    assert_eq!((status, answer.contains("the store is gone")), (503, true), "{answer}");
}

#[tokio::test]
async fn forks_are_separate_and_recall_returns_parts() {
    let engine = engine();
    let engines = engines(&engine);
    let (_, fork) =
        send_request(&engines, "POST", "/sessions/kiln/fork", r#"{"at": 3, "title": "Another way"}"#).await;
    let fork: Value = serde_json::from_str(&fork).unwrap();
    assert_eq!((fork["messages"].as_u64(), fork["title"].as_str()), (Some(3), Some("Another way")));
    assert_eq!((fork["parent"].as_str(), fork["relation"].as_str()), (Some("kiln"), Some("fork")));
    let (status, _) =
        send_request(&engines, "POST", "/sessions/kiln/fork", r#"{"title": "Another way"}"#).await;
    assert_eq!(status, 409, "the title is taken");
    let (_, folds) = send_request(&engines, "GET", "/sessions/kiln/folds", "").await;
    let folds: Value = serde_json::from_str(&folds).unwrap();
    let handle = folds["folds"][0]["handles"][0].as_str().unwrap().trim_start_matches('#');
    let (_, whole) = send_request(&engines, "GET", &format!("/recall/{handle}"), "").await;
    let (_, line) = send_request(&engines, "GET", &format!("/recall/{handle}?lines=2"), "").await;
    assert_eq!(Some(line.as_str()), whole.split('\n').nth(1));
    let (_, page) = send_request(&engines, "GET", "/sessions/kiln/messages?from=1&limit=2", "").await;
    let page: Value = serde_json::from_str(&page).unwrap();
    assert_eq!((page["total"].as_u64(), page["messages"].as_array().unwrap().len()), (Some(81), 2));
    assert_eq!(page["messages"][0]["position"], 1);
}

#[test]
fn the_table_of_routes_is_consistent() {
    for route in &ROUTES {
        for name in route.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
            let known = route.parameters.iter().find(|parameter| parameter.name == name);
            assert!(
                known.is_some_and(|known| known.location == ParameterLocation::Path),
                "{}: {name}",
                route.path
            );
        }
        let has_body = route.parameters.iter().any(|parameter| parameter.location == ParameterLocation::Body);
        assert!(!has_body || route.method == Method::Post, "{}", route.path);
        assert!(route.answer != ResponseShape::Shape(""), "{}", route.path);
    }
}
