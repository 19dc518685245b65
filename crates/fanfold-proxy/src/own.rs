//! Our own routes, all below `/fanfold/`, and words of ours to a client.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use crate::exchange::Shared;

/// What our own routes begin with.
pub(crate) const PREFIX: &str = "/fanfold/";

/// Whether sessions can be kept. Requests go through either way.
pub(crate) async fn ready(shared: Arc<Shared>) -> Response {
    let desk = Arc::clone(&shared.folder.desk);
    let looked = tokio::task::spawn_blocking(move || desk.is_ready());
    let found = match tokio::time::timeout(shared.limits.deadline, looked).await {
        Ok(Ok(found)) => found,
        Ok(Err(_)) => Err("the store could not be looked at".to_owned()),
        Err(_) => Err("the store does not answer".to_owned()),
    };
    match found {
        Ok(()) => answer(StatusCode::OK, &json!({ "ready": true })),
        Err(why) => {
            let hint = "requests go through unfolded until the store is back";
            answer(StatusCode::SERVICE_UNAVAILABLE, &json!({ "ready": false, "why": why, "hint": hint }))
        }
    }
}

/// JSON of ours.
pub(crate) fn answer(status: StatusCode, body: &serde_json::Value) -> Response {
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
