//! Receiving: from an HTTP request to a decoded body.

pub(crate) mod route;
pub(crate) mod headers;
pub(crate) mod read_body;
pub(crate) mod encoding;
pub(crate) mod decode;
pub(crate) mod turn_memory;
pub(crate) mod pending_recalls;
pub(crate) mod upstream;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use fanfold_http::ActiveRequest;
use fanfold_wire::Format;
use http::StatusCode;
use http::header::{HeaderMap, UPGRADE};
use http::request::Parts;

pub(crate) use self::decode::decode;
pub(crate) use self::read_body::read;
use crate::admission::request_slot::RequestSlot;
use crate::error_reply::ErrorReply;
use crate::meter::{RequestInfo, RequestMeter};
use crate::send::call::ProviderCall;
use crate::shared::Shared;

/// The header with the name of the session, in requests and responses.
pub(crate) const SESSION: &str = "x-fanfold-session";
/// Longer session names are ignored.
const MAX_NAME_BYTES: usize = 128;

/// A request with its destination.
pub(crate) struct RoutedRequest {
    pub(crate) call: ProviderCall,
    /// The format of a conversation; `None` for other requests, which are passed through.
    pub(crate) format: Option<Format>,
    pub(crate) parts: Parts,
    pub(crate) body: Body,
    pub(crate) slot: RequestSlot,
}

/// Chooses the upstream of a request, and prepares the URL and the headers for it.
pub(crate) fn route_request(shared: &Arc<Shared>, request: Request) -> Result<RoutedRequest, ErrorReply> {
    let (parts, body) = request.into_parts();
    // A client that is refused a WebSocket at once falls back to HTTP.
    if parts.headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        return Err(ErrorReply::new(
            StatusCode::UPGRADE_REQUIRED,
            "WebSockets are not supported",
            "use HTTP, which streams as well",
        ));
    }
    if headers::has_via(&parts.headers, &shared.via_name) {
        return Err(ErrorReply::new(
            StatusCode::LOOP_DETECTED,
            "a request came back to the proxy that forwarded it",
            "check --upstream, here and in the proxy it points to",
        ));
    }
    let path = parts.uri.path();
    let provider = route::provider(path, &parts.headers, shared.upstreams.default_provider);
    let upstream = shared.upstreams.choose(&parts.headers, provider).map_err(|name| {
        let message = format!("`{name}` is not among the upstreams");
        ErrorReply::new(StatusCode::FORBIDDEN, message, "add it to `allowed` in [serve] of the settings")
    })?;
    let Some(url) = parts.uri.path_and_query().and_then(|path| upstream.target(path)) else {
        let message = "the path is not absolute, or has a segment `.` or `..`";
        return Err(ErrorReply::new(
            StatusCode::BAD_REQUEST,
            message,
            "write the path out, beginning with a slash",
        ));
    };
    let format = route::folded(&parts.method, path);
    // The client may mean a provider that is not known here. Its key must not be sent to another one.
    if !upstream.accepts(&parts.method, path) {
        let message = format!("{} {path} is not in the API of {}", parts.method, upstream.address());
        let hint = "name the provider that serves it with --upstream URL";
        return Err(ErrorReply::new(StatusCode::NOT_FOUND, message, hint));
    }
    let mut headers = headers::to_upstream(&parts.headers);
    if upstream.is_plain() {
        headers::add_via(&mut headers, &shared.via_name);
    }
    let slot = RequestSlot {
        request: parts.extensions.get::<Arc<ActiveRequest>>().cloned(),
        timeout: shared.limits.deadline,
        n_slots: shared.limits.connections,
    };
    let (upstream, method) = (upstream.clone(), parts.method.clone());
    let call = ProviderCall { shared: Arc::clone(shared), upstream, method, url, headers };
    Ok(RoutedRequest { call, format, parts, body, slot })
}

/// Starts the metering of a conversation request.
pub(crate) fn start_metering(call: &ProviderCall, format: Format) -> RequestMeter {
    let traceparent = call.headers.get("traceparent").and_then(|value| value.to_str().ok());
    call.shared.meter.start_request(&RequestInfo { format, model: None, traceparent })
}

/// The session that a client names. Other than short printable names are ignored, and the session is recognised.
pub(crate) fn session_name(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(SESSION)?.to_str().ok()?.trim();
    (1..=MAX_NAME_BYTES).contains(&name.len()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn session_names_are_short_and_printable() {
        let named = |name: &[u8]| {
            let name = HeaderValue::from_bytes(name).unwrap();
            session_name(&HeaderMap::from_iter([(SESSION.parse().unwrap(), name)]))
        };
        assert_eq!(named(b" night run ").as_deref(), Some("night run"));
        assert_eq!((named(b""), named(b"  "), named("é".as_bytes())), (None, None, None));
        let longest = "n".repeat(MAX_NAME_BYTES);
        assert_eq!(named(longest.as_bytes()), Some(longest.clone()));
        assert_eq!(named(format!("{longest}n").as_bytes()), None);
    }
}
