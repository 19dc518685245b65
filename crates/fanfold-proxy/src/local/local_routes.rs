//! Our own routes, all below `/fanfold/`, and words of ours to a client.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tower::ServiceExt as _;

use super::api;
use crate::pipeline::Shared;

/// What our own routes begin with.
pub(crate) const PREFIX: &str = "/fanfold/";

/// Says that somebody is there, whoever asks.
pub(crate) const HEALTH: &str = "/fanfold/health";

/// Answers on our own routes.
pub(crate) async fn answer_to(shared: Arc<Shared>, request: Request) -> Response {
    let path = request.uri().path();
    let is_of =
        |route: &str| path == route || path.strip_prefix(route).is_some_and(|rest| rest.starts_with('/'));
    if let Some(mcp) = shared.mcp.clone().filter(|_| is_of("/fanfold/mcp")) {
        return match mcp.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    }
    if is_of(api::PATH) {
        return match shared.api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    }
    match path {
        HEALTH => answer(StatusCode::OK, &json!({ "ok": true, "version": env!("CARGO_PKG_VERSION") })),
        "/fanfold/ready" => ready(shared).await,
        "/fanfold/status" => match serde_json::to_value(shared.meter.status()) {
            Ok(status) => answer(StatusCode::OK, &status),
            Err(_) => error(StatusCode::INTERNAL_SERVER_ERROR, "there is no status", "try again"),
        },
        "/fanfold/metrics" => {
            let kind = HeaderValue::from_static("text/plain; version=0.0.4");
            let mut response = Response::new(Body::from(shared.meter.prometheus()));
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        _ => {
            let hint =
                "there are /fanfold/health, ready, status, metrics, mcp and api; all other paths go upstream";
            error(StatusCode::NOT_FOUND, &format!("there is no route {path}"), hint)
        }
    }
}

/// Whether sessions can be kept now, or why not.
pub(crate) async fn is_ready(shared: &Shared) -> Result<(), String> {
    let desk = Arc::clone(&shared.folder.desk);
    let looked = tokio::task::spawn_blocking(move || desk.is_ready());
    match tokio::time::timeout(shared.limits.deadline, looked).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => Err("the store could not be looked at".to_owned()),
        Err(_) => Err("the store does not answer".to_owned()),
    }
}

/// Tells whether sessions can be kept. Requests go through either way.
async fn ready(shared: Arc<Shared>) -> Response {
    match is_ready(&shared).await {
        Ok(()) => answer(StatusCode::OK, &json!({ "ready": true })),
        Err(why) => {
            let hint = "requests go through unfolded until the store is back";
            answer(StatusCode::SERVICE_UNAVAILABLE, &json!({ "ready": false, "why": why, "hint": hint }))
        }
    }
}

/// JSON of ours.
fn answer(status: StatusCode, body: &serde_json::Value) -> Response {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An error of ours, in a shape that the clients of every provider read.
pub(crate) fn error(status: StatusCode, message: &str, hint: &str) -> Response {
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "api_error",
    };
    let message = format!("fanfold: {message}\n\nhint: {hint}");
    let error = json!({ "type": kind, "code": "fanfold", "message": message });
    let mut response = answer(status, &json!({ "type": "error", "error": error }));
    response.headers_mut().insert("x-fanfold", HeaderValue::from_static("error"));
    response
}
