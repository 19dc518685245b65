//! Routes that the proxy answers itself, all below `/fanfold/`.

pub mod api;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use fanfold_engine::store_message;
use fanfold_store::StoreError;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;
use tower::ServiceExt as _;

use crate::error_reply::{ErrorReply, json_response};
use crate::meter::{Status, StoreOutage};
use crate::shared::Shared;

const PREFIX: &str = "/fanfold/";

/// The health route, which needs no token.
pub(crate) const HEALTH: &str = "/fanfold/health";

/// Returns whether the proxy answers a path itself.
pub(crate) fn is_local(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Answers a request on a local route.
pub(crate) async fn answer(shared: Arc<Shared>, request: Request) -> Response {
    let path = request.uri().path();
    let is_below =
        |route: &str| path == route || path.strip_prefix(route).is_some_and(|rest| rest.starts_with('/'));
    let mcp = shared.mcp.clone().filter(|_| is_below("/fanfold/mcp"));
    if let Some(router) = mcp.or_else(|| is_below(api::PATH).then(|| shared.api.clone())) {
        return match router.oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    }
    match path {
        HEALTH => json_response(StatusCode::OK, &json!({ "ok": true, "version": env!("CARGO_PKG_VERSION") })),
        "/fanfold/ready" => ready(shared).await,
        "/fanfold/status" => match serde_json::to_value(status(&shared)) {
            Ok(status) => json_response(StatusCode::OK, &status),
            Err(_) => {
                let message = "the status could not be written";
                ErrorReply::new(StatusCode::INTERNAL_SERVER_ERROR, message, "try again").into_response()
            }
        },
        "/fanfold/metrics" => {
            let kind = HeaderValue::from_static("text/plain; version=0.0.4");
            let mut response = Response::new(Body::from(shared.meter.prometheus()));
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            response
        }
        _ => {
            let hint = "local routes are /fanfold/health, ready, status, metrics, mcp and api; other paths go upstream";
            ErrorReply::new(StatusCode::NOT_FOUND, format!("there is no route {path}"), hint).into_response()
        }
    }
}

/// The counts, and the outage of the store if there is one.
fn status(shared: &Shared) -> Status {
    let store = shared.engine.outage().map(|outage| StoreOutage {
        error: store_message(&StoreError::Unavailable(outage.error)),
        since: outage.since.to_string(),
        sessions: outage.n_sessions as u64,
        messages: outage.n_messages as u64,
        dropped: outage.n_dropped as u64,
    });
    Status { store, ..shared.meter.status() }
}

/// Returns whether the store works, or returns an error message.
pub(crate) async fn is_ready(shared: &Shared) -> Result<(), String> {
    let engine = Arc::clone(&shared.engine);
    let check = tokio::task::spawn_blocking(move || engine.is_ready());
    match tokio::time::timeout(shared.limits.deadline, check).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err("the store could not be checked".to_owned()),
        Err(_) => Err("the store does not answer".to_owned()),
    }
}

async fn ready(shared: Arc<Shared>) -> Response {
    match is_ready(&shared).await {
        Ok(()) => json_response(StatusCode::OK, &json!({ "ready": true })),
        Err(why) => {
            let hint = "requests are folded in memory, and stored when the store works again";
            let status = json!({ "ready": false, "why": why, "hint": hint });
            json_response(StatusCode::SERVICE_UNAVAILABLE, &status)
        }
    }
}
