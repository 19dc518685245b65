//! Tokens, web pages, upstreams and stalled clients.

use std::sync::Arc;
use std::time::Duration;

use fanfold_engine::Mode;
use fanfold_proxy::meter::Meter;
use fanfold_proxy::{Config, Host, Limits, Recall, ServeError, Upstream, Upstreams, WebAccess, serve};
use fanfold_replay::PriceTable;
use fanfold_store::SessionFilter;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::setting::{Stage, StageOptions, chat, long_chat};

const TOKEN: &str = "a-token-of-enough-letters";

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_required_if_set() {
    let stage = Stage::new(StageOptions { token: Some(TOKEN), ..StageOptions::default() }).await;
    let body = chat(&long_chat(1));
    let send = async |token: Option<&str>| {
        let mut request = stage.post("/v1/chat/completions", body.clone());
        if let Some(token) = token {
            request = request.header("x-fanfold-token", token);
        }
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!((send(None).await, send(Some("a-token-of-enough-letterz")).await), (401, 401));
    assert_eq!(stage.upstream.n_seen(), 0, "nothing was forwarded");
    assert_eq!(send(Some(TOKEN)).await, 200);
    let seen = stage.upstream.seen();
    assert_eq!(seen[0].header("authorization"), Some("Bearer the-clients-own"));
    assert!(!seen[0].headers.iter().any(|(_, value)| value.contains(TOKEN)), "the token is not forwarded");
    // As a bearer token, if the API key is in another header.
    let request = stage.client.post(stage.url("/v1/messages")).header("x-api-key", "the-clients-own");
    let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    let response =
        request.header("authorization", format!("Bearer {TOKEN}")).body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let seen = stage.upstream.seen();
    assert_eq!(
        (seen[1].header("authorization"), seen[1].header("x-api-key")),
        (None, Some("the-clients-own"))
    );
    let own = async |path: &str| stage.client.get(stage.url(path)).send().await.unwrap().status().as_u16();
    assert_eq!((own("/fanfold/health").await, own("/fanfold/status").await), (200, 401));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_token_only_loopback_addresses_are_allowed() {
    let stage = Stage::new(StageOptions::default()).await;
    let config = Config {
        listen: "0.0.0.0:0".parse().unwrap(),
        upstreams: Upstreams::one(&Upstream::parse("http://127.0.0.1:9").unwrap()),
        host: Arc::clone(&stage.host) as Arc<dyn Host>,
        mode: Mode::Fold,
        recall: Recall::Off,
        memory: None,
        meter: Arc::new(Meter::new(PriceTable::built_in())),
        mcp: None,
        ca: None,
        token: None,
        web_access: WebAccess::default(),
        limits: Limits::default(),
    };
    assert!(matches!(serve(config).await, Err(ServeError::MissingToken(_))));
}

/// The headers of a request by a web page of another host.
const FOREIGN: [&[(&str, &str)]; 5] = [
    &[("origin", "http://evil.example"), ("sec-fetch-site", "cross-site"), ("content-type", "text/plain")],
    &[("origin", "null")],
    &[("sec-fetch-site", "cross-site")],
    &[("sec-fetch-site", "same-site")],
    &[("host", "evil.example:7744")],
];

/// The status of a request with these headers: a conversation, or a query of a local route.
async fn status(stage: &Stage, path: &str, headers: &[(&str, &str)]) -> u16 {
    let mut request = match path.starts_with("/fanfold/") {
        true => stage.client.get(stage.url(path)),
        false => stage.client.post(stage.url(path)).body(chat(&long_chat(1))),
    };
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn web_pages_of_other_hosts_can_use_no_route() {
    let stage = Stage::new(StageOptions::default()).await;
    for headers in FOREIGN {
        for path in ["/v1/chat/completions", "/v1/embeddings", "/fanfold/status", "/fanfold/health"] {
            assert_eq!(status(&stage, path, headers).await, 403, "{path} {headers:?}");
        }
    }
    assert_eq!(stage.upstream.n_seen(), 0, "nothing was forwarded");
    let sessions = stage.host.open().unwrap().store().sessions(&SessionFilter::default()).unwrap();
    assert!(sessions.is_empty(), "nothing was stored");
    let refused = stage.client.get(stage.url("/fanfold/status")).header("origin", "http://evil.example");
    let error = refused.send().await.unwrap().text().await.unwrap();
    assert!(error.contains("`http://evil.example`") && error.contains("`origins` in [serve]"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_and_pages_in_the_settings_can_use_all_routes() {
    let web_access = WebAccess {
        hosts: vec!["box.example".to_owned()],
        origins: vec!["vscode-file://vscode-app".to_owned()],
    };
    let stage = Stage::new(StageOptions { web_access, ..StageOptions::default() }).await;
    let trusted: [&[(&str, &str)]; 5] = [
        &[],
        &[("origin", "http://localhost:3000"), ("sec-fetch-site", "cross-site")],
        &[("origin", "vscode-file://vscode-app"), ("sec-fetch-site", "cross-site")],
        &[("host", "box.example:7744"), ("origin", "https://box.example")],
        &[("sec-fetch-site", "none")],
    ];
    for headers in trusted {
        for path in ["/v1/chat/completions", "/fanfold/status"] {
            assert_eq!(status(&stage, path, headers).await, 200, "{path} {headers:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_the_token_may_name_any_host_and_origin() {
    let stage = Stage::new(StageOptions { token: Some(TOKEN), ..StageOptions::default() }).await;
    for headers in FOREIGN {
        let with_token = [headers, &[("x-fanfold-token", TOKEN)]].concat();
        assert_eq!(status(&stage, "/v1/chat/completions", &with_token).await, 200, "{headers:?}");
        assert_eq!(status(&stage, "/v1/chat/completions", headers).await, 401, "{headers:?}");
    }
    let probe = status(&stage, "/fanfold/health", &[("host", "10.0.0.7:7744")]).await;
    assert_eq!(probe, 200, "a health check of another machine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_leaves_the_upstream_is_refused() {
    let stage = Stage::new(StageOptions::default()).await;
    for path in ["/v1/../../other/x", "/v1/%2e%2e/%2E./other/x", "/v1/chat/./completions"] {
        let mut raw = TcpStream::connect(stage.running.address()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        raw.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        raw.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("a segment `.`"), "{path}: {answer}");
    }
    assert_eq!(stage.upstream.n_seen(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_choose_unlisted_upstreams() {
    let stage = Stage::new(StageOptions::default()).await;
    let request = stage.post("/v1/chat/completions", chat(&long_chat(1)));
    let response = request.header("x-fanfold-upstream", "http://127.0.0.1:9").send().await.unwrap();
    assert_eq!(response.status(), 403);
    let request = stage.post("/v1/chat/completions", chat(&long_chat(1)));
    let response = request.header("x-fanfold-upstream", stage.upstream.url()).send().await.unwrap();
    assert_eq!(response.status(), 200, "the configured upstream may be named");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_an_unknown_provider_are_not_sent_to_another_one() {
    let stage = Stage::new(StageOptions::default()).await;
    let config = Config {
        listen: "127.0.0.1:0".parse().unwrap(),
        upstreams: Upstreams::new(Upstream::default_of),
        ..stage.config.clone()
    };
    let running = serve(config).await.unwrap();
    // The second path is the one under which Google serves clients of OpenAI.
    for path in ["/v1beta/models/gemini-pro:generateContent", "/v1beta/openai/chat/completions"] {
        let request = stage.client.post(format!("http://{}{path}?alt=sse", running.address()));
        let response = request.header("x-goog-api-key", "the-clients-own").body("{}").send().await.unwrap();
        assert_eq!(
            (response.status().as_u16(), response.headers()["x-fanfold"].as_bytes()),
            (404, &b"error"[..]),
            "{path}"
        );
        let error = response.text().await.unwrap();
        assert!(error.contains(path) && error.contains("--upstream"), "{error}");
    }
    assert_eq!(stage.upstream.n_seen(), 0);
    // An upstream that a person chose gets every path.
    let path = "/v1beta/models/gemini-pro:generateContent";
    let chosen = stage.client.post(stage.url(path)).body("{}").send().await.unwrap();
    assert!(!chosen.headers().contains_key("x-fanfold"), "{chosen:?}");
    assert_eq!(stage.upstream.n_seen(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_clients_are_disconnected() {
    let limits = Limits { client_idle: Duration::from_millis(200), connections: 2, ..Limits::default() };
    let stage = Stage::new(StageOptions { limits, ..StageOptions::default() }).await;
    let open = || TcpStream::connect(stage.running.address());
    // One client sends nothing, one stops in its headers: both slots are taken.
    let (mut silent, mut slow) = (open().await.unwrap(), open().await.unwrap());
    slow.write_all(b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: ").await.unwrap();
    let response = stage.chat(&chat(&long_chat(1))).await;
    assert_eq!(response.status(), 200, "the third client waits for a slot and gets it");
    let mut buffer = Vec::new();
    for stream in [&mut silent, &mut slow] {
        let ended = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut buffer)).await;
        assert!(ended.is_ok(), "the connection is closed");
    }
    // A client stops in its body.
    let mut stopped = open().await.unwrap();
    let head = b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 99\r\n\r\n{\"mod";
    stopped.write_all(head).await.unwrap();
    let mut answer = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(5), stopped.read_to_end(&mut answer)).await;
    assert!(ended.is_ok() && answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn websockets_are_refused_with_426() {
    let stage = Stage::new(StageOptions::default()).await;
    let request = stage.client.get(stage.url("/v1/responses"));
    let request = request.header("connection", "upgrade").header("upgrade", "WebSocket");
    assert_eq!(request.send().await.unwrap().status(), 426);
    assert_eq!(stage.upstream.n_seen(), 0);
}
