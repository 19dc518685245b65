//! Context windows of every known kind of server.

use std::time::{Duration, Instant};

use fanfold_provider::{
    Endpoint, ErrorClass, KeySource, ModelClient, ProviderError, ServerWindow, Timeouts, WindowKind,
};
use fanfold_testkit::fakes::upstream::{Fault, Upstream};
use serde_json::{Value, json};

use crate::setup::{OPENAI, client, endpoint, raw, upstream};

fn probe(routes: &[(&str, Value)]) -> (Option<ServerWindow>, Upstream) {
    let upstream = upstream();
    for (path, body) in routes {
        upstream.answer_at(path, body);
    }
    let client = client(OPENAI, &upstream.url());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    (runtime.block_on(client.probe_window()).unwrap(), upstream)
}

/// The window that a server serves the model with.
fn served(client: &ModelClient) -> Result<Option<u64>, ProviderError> {
    client.probe_window_blocking().map(|found| found.and_then(ServerWindow::served))
}

fn check(routes: &[(&str, Value)], expected: Option<(u64, WindowKind, &str)>) {
    let (window, _) = probe(routes);
    assert_eq!(window.map(|window| (window.tokens, window.kind, window.server)), expected, "{routes:?}");
}

fn list(entry: &Value) -> Value {
    json!({ "object": "list", "data": [{ "id": "another" }, entry] })
}

#[test]
fn every_kind_of_server() {
    use WindowKind::{Served, Trained};
    let models = "/v1/models";
    let bare = || (models, list(&json!({ "id": "m", "owned_by": "library" })));
    check(
        &[(models, list(&json!({ "id": "m", "owned_by": "vllm", "max_model_len": 32768 })))],
        Some((32768, Served, "vLLM")),
    );
    check(
        &[(models, list(&json!({ "id": "m", "owned_by": "sglang", "max_model_len": 16384 })))],
        Some((16384, Served, "SGLang")),
    );
    let llama = list(&json!({ "id": "m", "owned_by": "llamacpp", "meta": { "n_ctx_train": 131_072 } }));
    let props = json!({ "default_generation_settings": { "n_ctx": 8192 }, "total_slots": 1 });
    check(&[(models, llama.clone()), ("/props", props)], Some((8192, Served, "llama.cpp")));
    check(&[(models, llama)], Some((131_072, Trained, "llama.cpp")));
    let show = |parameters: &str| json!({ "parameters": parameters, "model_info": { "qwen3.context_length": 40960 } });
    check(&[bare(), ("/api/show", show("num_ctx 12000"))], Some((12000, Served, "Ollama")));
    check(&[bare(), ("/api/show", show(""))], Some((40960, Trained, "Ollama")));
    let ps = json!({ "models": [{ "name": "m", "model": "m", "context_length": 4096 }] });
    check(&[bare(), ("/api/show", show("num_ctx 12000")), ("/api/ps", ps)], Some((4096, Served, "Ollama")));
    let studio =
        json!({ "data": [{ "id": "m", "max_context_length": 40960, "loaded_context_length": 6000 }] });
    check(&[bare(), ("/api/v0/models", studio)], Some((6000, Served, "LM Studio")));
    check(&[("/info", json!({ "model_id": "m", "max_total_tokens": 4096 }))], Some((4096, Served, "TGI")));
    check(
        &[bare(), ("/get_model_info", json!({ "model_path": "m", "context_length": 9000 }))],
        Some((9000, Served, "SGLang")),
    );
    let lite = json!({ "data": [{ "model_name": "m", "model_info": { "max_input_tokens": 128_000 } }] });
    check(&[bare(), ("/model/info", lite)], Some((128_000, Served, "LiteLLM")));
    check(&[bare()], None);
    check(
        &[(models, list(&json!({ "id": "m", "context_length": 65536 })))],
        Some((65536, Served, "the provider")),
    );
}

#[test]
fn the_trained_window_is_not_the_served_one() {
    let upstream = upstream();
    upstream.answer_at("/api/show", &json!({ "model_info": { "llama.context_length": 131_072 } }));
    let client = client(OPENAI, &upstream.url());
    assert_eq!(served(&client), Ok(None));
    upstream.answer_at("/api/show", &json!({ "parameters": "num_ctx 8192" }));
    assert_eq!(served(&client), Ok(Some(8192)));
}

#[test]
fn a_window_in_the_model_list_ends_the_probe() {
    let (window, upstream) = probe(&[("/v1/models", list(&json!({ "id": "m", "max_model_len": 5000 })))]);
    assert_eq!((window.map(|window| window.tokens), upstream.n_seen()), (Some(5000), 1));
}

#[test]
fn probes_send_the_key() {
    let upstream = upstream();
    let key = KeySource::Command("echo made-up-key".to_owned());
    let client = ModelClient::new(Endpoint { key, ..endpoint(OPENAI, &upstream.url()) }).unwrap();
    assert_eq!(served(&client), Ok(None));
    let seen = upstream.seen();
    assert!(
        seen.len() > 5 && seen.iter().all(|seen| seen.header("authorization") == Some("Bearer made-up-key"))
    );
}

#[test]
fn unreachable_silent_and_refusing_servers() {
    let error = served(&client(OPENAI, "http://127.0.0.1:9")).unwrap_err();
    assert_eq!(error.class, ErrorClass::Connection);
    let silent = raw(vec![vec![Vec::new(), Vec::new()]], Duration::from_secs(20));
    let timeouts = Timeouts { window: Duration::from_millis(300), ..Timeouts::default() };
    let client = ModelClient::new(Endpoint { timeouts, ..endpoint(OPENAI, &silent) }).unwrap();
    let began = Instant::now();
    assert_eq!(served(&client).unwrap_err().class, ErrorClass::Timeout);
    assert!(began.elapsed() < Duration::from_secs(5));
    let refusing = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let url = raw(vec![vec![refusing.as_bytes().to_vec()]], Duration::ZERO);
    assert_eq!(served(&crate::setup::client(OPENAI, &url)).unwrap_err().class, ErrorClass::Auth);
}

#[test]
fn probes_do_not_consume_faults_of_the_model() {
    // A scripted fault waits for a prompt, and a probe is not one.
    let upstream = upstream();
    upstream.fault(Fault::Status(500));
    assert_eq!(served(&client(OPENAI, &upstream.url())), Ok(None));
}
