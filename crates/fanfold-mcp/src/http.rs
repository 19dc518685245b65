//! Streamable HTTP and access control.
//!
//! The server keeps no MCP session: every request is independent, so a restart loses nothing and idle clients cost
//! nothing. A client that closes its connection cancels its call.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::listener::BoundedListener;
use crate::server::Server;

/// The paths that [`listen`] serves.
pub const PATHS: [&str; 2] = ["/mcp", "/fanfold/mcp"];

/// Requests with a longer body are rejected.
const MAX_BODY: usize = 1 << 20;

/// Time to receive a request and send its answer, in addition to the deadline of the call.
const GRACE: Duration = Duration::from_secs(10);

/// Further connections wait.
const MAX_CONNECTIONS: usize = 256;

/// Idle connections are closed after this time, which is longer than any call takes.
const IDLE: Duration = Duration::from_secs(60);

/// Web pages that may send requests: those of tools on the same machine, on any port.
const ORIGINS: [&str; 6] = [
    "http://localhost:*",
    "http://127.0.0.1:*",
    "http://[::1]:*",
    "https://localhost:*",
    "https://127.0.0.1:*",
    "https://[::1]:*",
];

/// Decides which requests are accepted.
#[derive(Clone)]
pub struct AccessRules {
    is_loopback: bool,
    token: Option<Arc<str>>,
}

/// Why a server may not listen on an address.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Any machine could read all sessions.
    #[error("{0} can be reached from other machines, and no token is set")]
    NoToken(SocketAddr),
    /// The token could be guessed.
    #[error("the token is shorter than {} characters", AccessRules::MIN_TOKEN)]
    ShortToken,
}

impl AccessError {
    /// How to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            AccessError::NoToken(_) => "set FANFOLD_TOKEN, or listen on 127.0.0.1",
            AccessError::ShortToken => "make one with `openssl rand -hex 24`",
        }
    }
}

impl AccessRules {
    /// The shortest token.
    const MIN_TOKEN: usize = 16;

    /// Rules for a server on `address`: from this machine, or with the token.
    pub fn new(address: SocketAddr, token: Option<String>) -> Result<AccessRules, AccessError> {
        let is_loopback = address.ip().to_canonical().is_loopback();
        match &token {
            None if !is_loopback => return Err(AccessError::NoToken(address)),
            Some(token) if token.len() < AccessRules::MIN_TOKEN => return Err(AccessError::ShortToken),
            _ => {}
        }
        Ok(AccessRules { is_loopback, token: token.map(Arc::from) })
    }

    /// Rules for a service inside a server that has already checked the token.
    pub fn checked(is_loopback: bool) -> AccessRules {
        AccessRules { is_loopback, token: None }
    }

    fn allows(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text("authorization").and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let given = bearer.map(|(_, token)| token.trim()).or(text("x-fanfold-token"));
        given.is_some_and(|given| is_equal(given.as_bytes(), token.as_bytes()))
    }
}

/// Compares in constant time, so that timing reveals nothing about the token.
fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// The server as an HTTP service, for any path of a router.
pub fn http_service(server: Server, access: AccessRules) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY)
        .with_allowed_origins(ORIGINS)
        .enforce_origin_validation();
    // On loopback, where a token is optional, the Host header is checked to prevent DNS rebinding.
    let config = if access.is_loopback { config } else { config.disable_allowed_hosts() };
    let timeout = server.deadline() + GRACE;
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new().fallback_service(service).layer(from_fn_with_state(Arc::new((access, timeout)), guard))
}

/// Checks the token and limits the duration of a request.
async fn guard(
    State(guarded): State<Arc<(AccessRules, Duration)>>,
    request: Request,
    next: Next,
) -> Response {
    let (access, timeout) = &*guarded;
    if !access.allows(request.headers()) {
        let message = "the token is missing or wrong\n\nhint: send it as `Authorization: Bearer TOKEN`\n";
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], message).into_response();
    }
    match tokio::time::timeout(*timeout, next.run(request)).await {
        Ok(response) => response,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request timed out\n").into_response(),
    }
}

/// Serves clients on a listener until `stop` completes, then finishes the open requests.
pub async fn listen(
    server: Server,
    access: AccessRules,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let service = http_service(server, access);
    let mut router = Router::new();
    for path in PATHS {
        router = router.nest(path, service.clone());
    }
    let router = router.fallback(async || (StatusCode::NOT_FOUND, "MCP is at /mcp\n"));
    let listener = BoundedListener::new(listener, MAX_CONNECTIONS, IDLE);
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn other_machines_need_a_token() {
        assert!(AccessRules::new(address("127.0.0.1:1"), None).is_ok());
        assert!(AccessRules::new(address("[::1]:1"), None).is_ok());
        assert!(AccessRules::new(address("[::ffff:127.0.0.1]:1"), None).is_ok());
        for open in ["0.0.0.0:1", "[::]:1", "192.168.1.2:1"] {
            assert!(matches!(AccessRules::new(address(open), None), Err(AccessError::NoToken(_))), "{open}");
            assert!(AccessRules::new(address(open), Some("x".repeat(16))).is_ok());
        }
        let short = AccessRules::new(address("127.0.0.1:1"), Some("short".into()));
        assert!(matches!(short, Err(AccessError::ShortToken)));
    }

    #[test]
    fn a_token_is_accepted_in_two_headers() {
        let token = "0123456789abcdef";
        let access = AccessRules::new(address("0.0.0.0:1"), Some(token.into())).unwrap();
        let with = |name: &'static str, value: String| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            access.allows(&headers)
        };
        assert!(with("authorization", format!("Bearer {token}")));
        assert!(with("authorization", format!("bearer  {token}")));
        assert!(with("x-fanfold-token", token.into()));
        for wrong in
            ["", "Bearer", "Bearer 0123456789abcdeF", "Basic 0123456789abcdef", "Bearer 0123456789abcde"]
        {
            assert!(!with("authorization", wrong.into()), "{wrong}");
        }
        assert!(!access.allows(&HeaderMap::new()));
    }
}
