//! Errors of the proxy itself, as JSON that the clients of every provider can read.

use axum::body::Body;
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

/// An error for the client, with a next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorReply {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: &'static str,
    /// True if the client should try again after a second.
    pub(crate) is_temporary: bool,
}

impl ErrorReply {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>, hint: &'static str) -> ErrorReply {
        ErrorReply { status, message: message.into(), hint, is_temporary: false }
    }

    pub(crate) fn into_response(self) -> Response {
        let kind = match self.status {
            StatusCode::UNAUTHORIZED => "authentication_error",
            StatusCode::FORBIDDEN => "permission_error",
            StatusCode::NOT_FOUND => "not_found_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "api_error",
        };
        let message = format!("fanfold: {}\n\nhint: {}", self.message, self.hint);
        let error = json!({ "type": kind, "code": "fanfold", "message": message });
        let mut response = json_response(self.status, &json!({ "type": "error", "error": error }));
        response.headers_mut().insert("x-fanfold", HeaderValue::from_static("error"));
        if self.is_temporary {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// A JSON response.
pub(crate) fn json_response(status: StatusCode, body: &serde_json::Value) -> Response {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
