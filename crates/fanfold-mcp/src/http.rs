//! Streamable HTTP and access control.
//!
//! The server keeps no MCP session: every request is independent, so a restart loses nothing and idle clients cost
//! nothing. A client that closes its connection cancels its call.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use fanfold_http::{Server as HttpServer, ServerLimits, Token, WebAccess};
use rmcp::model::ErrorCode;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::server::Server;

/// The paths that [`listen`] serves.
pub const PATHS: [&str; 2] = ["/mcp", "/fanfold/mcp"];

/// Requests with a longer body are rejected.
const MAX_BODY: usize = 1 << 20;

/// Time to receive a request and send its answer, in addition to the deadline of the call.
const GRACE: Duration = Duration::from_secs(10);

const LIMITS: ServerLimits = ServerLimits {
    connections: 256,
    first_request: Duration::from_secs(10),
    // Longer than any call takes.
    client_idle: Duration::from_secs(60),
};

/// Decides which requests are accepted.
#[derive(Clone)]
pub enum AccessRules {
    /// The server around the service has checked the requests.
    Checked,
    /// Requests with the token, unless a web page of another host sends them.
    Token(Token, WebAccess),
    /// Requests of programs and web pages on this machine.
    Local(WebAccess),
}

/// Why a server may not listen on an address.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// Any machine could read all sessions.
    #[error("{0} can be reached from other machines, and no token is set")]
    NoToken(SocketAddr),
    /// The token could be guessed.
    #[error("the token is shorter than {} characters", Token::MIN_LENGTH)]
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
    /// Rules for a server on `address`: from this machine, or with the token.
    pub fn new(
        address: SocketAddr,
        token: Option<&str>,
        web_access: WebAccess,
    ) -> Result<AccessRules, AccessError> {
        let token = token.map(|token| Token::new(token).ok_or(AccessError::ShortToken)).transpose()?;
        match token {
            Some(token) => Ok(AccessRules::Token(token, web_access)),
            None if address.ip().to_canonical().is_loopback() => Ok(AccessRules::Local(web_access)),
            None => Err(AccessError::NoToken(address)),
        }
    }

    /// The refusal of a request that is not accepted. Removes the token of the others.
    fn refusal(&self, request: &mut Request) -> Option<Response> {
        let page_refusal = match self {
            AccessRules::Checked => None,
            AccessRules::Local(web_access) => web_access.check(request.uri(), request.headers()).err(),
            AccessRules::Token(token, web_access) if token.take(request.headers_mut()) => {
                web_access.check_page(request.headers()).err()
            }
            AccessRules::Token(..) => {
                let message =
                    "the token is missing or wrong\n\nhint: send it as `Authorization: Bearer TOKEN`\n";
                let asks = [(header::WWW_AUTHENTICATE, "Bearer")];
                return Some((StatusCode::UNAUTHORIZED, asks, message).into_response());
            }
        };
        page_refusal.map(|refusal| {
            (StatusCode::FORBIDDEN, format!("{refusal}\n\nhint: {}\n", refusal.hint())).into_response()
        })
    }
}

/// The server as an HTTP service, for any path of a router.
pub fn http_service(server: Server, access: AccessRules) -> Router {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_max_request_body_bytes(MAX_BODY)
        // `AccessRules` checks host names and origins.
        .disable_allowed_hosts();
    let timeout = server.deadline() + GRACE;
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    Router::new().fallback_service(service).layer(from_fn_with_state(Arc::new((access, timeout)), guard))
}

/// Checks a request and limits its duration.
async fn guard(
    State(guarded): State<Arc<(AccessRules, Duration)>>,
    mut request: Request,
    next: Next,
) -> Response {
    let (access, timeout) = &*guarded;
    if let Some(refusal) = access.refusal(&mut request) {
        return refusal;
    }
    match tokio::time::timeout(*timeout, run(request, next)).await {
        Ok(response) => response,
        Err(_) => (StatusCode::REQUEST_TIMEOUT, "the request timed out\n").into_response(),
    }
}

/// Runs a request. A body that is not a message gets an error of JSON-RPC.
async fn run(request: Request, next: Next) -> Response {
    let kind = request.headers().get(header::CONTENT_TYPE).map(|kind| kind.as_bytes());
    let is_json = kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with(b"application/json"));
    if request.method() != Method::POST || !is_json {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        let message = format!("the body is longer than {MAX_BODY} bytes, or was cut off\n");
        return (StatusCode::PAYLOAD_TOO_LARGE, message).into_response();
    };
    if let Err(error) = serde_json::from_slice::<IgnoredAny>(&body) {
        return rpc_error(ErrorCode::PARSE_ERROR, &format!("the body is not JSON: {error}"));
    }
    let response = next.run(Request::from_parts(parts, Body::from(body))).await;
    match response.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            rpc_error(ErrorCode::INVALID_REQUEST, "the body is not a message of JSON-RPC 2.0")
        }
        _ => response,
    }
}

fn rpc_error(code: ErrorCode, message: &str) -> Response {
    let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code.0, "message": message } });
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::BAD_REQUEST, kind, error.to_string()).into_response()
}

/// Serves clients on a listener until `stop` completes, then finishes the open requests.
pub async fn listen(
    server: Server,
    access: AccessRules,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) {
    let service = http_service(server, access);
    let mut router = Router::new();
    for path in PATHS {
        router = router.nest(path, service.clone());
    }
    let router = router.fallback(async || (StatusCode::NOT_FOUND, "MCP is at /mcp\n"));
    let handler = move |request| {
        let router = router.clone();
        async move {
            match router.oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            }
        }
    };
    let connections = HttpServer::start(listener, LIMITS, handler);
    stop.await;
    connections.close();
    connections.wait().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn rules(listen: &str, token: Option<&str>) -> Result<AccessRules, AccessError> {
        AccessRules::new(address(listen), token, WebAccess::default())
    }

    #[test]
    fn other_machines_need_a_token() {
        let token = Some("0123456789abcdef");
        for local in ["127.0.0.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(matches!(rules(local, None), Ok(AccessRules::Local(_))), "{local}");
        }
        for open in ["0.0.0.0:1", "[::]:1", "192.168.1.2:1"] {
            assert!(matches!(rules(open, None), Err(AccessError::NoToken(_))), "{open}");
            assert!(matches!(rules(open, token), Ok(AccessRules::Token(..))), "{open}");
        }
        assert!(matches!(rules("127.0.0.1:1", Some("short")), Err(AccessError::ShortToken)));
    }
}
