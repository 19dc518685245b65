//! Faults of a provider, and its error bodies.

use std::time::Duration;

use serde_json::{Value, json};

use crate::generators::bodies::BodyFormat;

/// A fault of the provider.
#[derive(Debug, Clone)]
pub enum Fault {
    /// Waits before a normal answer.
    Stall(Duration),
    /// Closes the connection without an answer.
    HangUp,
    /// Closes the connection after this number of events of a stream, or in the middle of a non-streamed answer.
    Disconnect(usize),
    /// Ends the HTTP stream correctly after this number of events, before the reply is complete.
    EndEarly(usize),
    /// Sends an overload error after this number of events of a stream. A non-streamed answer is that error with
    /// status 200.
    LateError(usize),
    /// Sends status 200 with a body that is not JSON.
    Garbage,
    /// Sends bytes that are not HTTP.
    NotHttp,
    /// Pauses between the events of a stream, or between parts of a non-streamed answer.
    Drip(Duration),
    /// A status with its typical body and headers: 401, 402, 403, 404, 429, 500, 529.
    Status(u16),
    /// A status with exactly this body.
    Answer(u16, String),
    /// A status with these headers and this body.
    AnswerWith(u16, Vec<(String, String)>, String),
    /// An HTML page of a gateway with this status.
    GatewayPage(u16),
    /// Replaces the reply by a text.
    ReplyText(String),
    /// Replaces the stop reason, in the term of the API.
    StopReason(String),
}

impl Fault {
    /// True if the fault changes a reply of the model instead of replacing it.
    pub(super) fn needs_reply(&self) -> bool {
        match self {
            Fault::Stall(_)
            | Fault::Disconnect(_)
            | Fault::EndEarly(_)
            | Fault::LateError(_)
            | Fault::Drip(_)
            | Fault::ReplyText(_)
            | Fault::StopReason(_) => true,
            Fault::HangUp
            | Fault::Garbage
            | Fault::NotHttp
            | Fault::Status(_)
            | Fault::Answer(..)
            | Fault::AnswerWith(..)
            | Fault::GatewayPage(_) => false,
        }
    }
}

/// The HTML page of a gateway.
pub(super) fn page(status: u16) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><title>{status} from the gateway</title><style>p {{ color: red }}</style></head>\
         <body><h1>Sorry</h1><p>Ray ID: 0123456789</p></body></html>"
    )
}

/// The error body of an API for a status.
pub(super) fn error(kind: BodyFormat, status: u16, model: &str) -> Value {
    let (name, code, message) = match status {
        401 => ("authentication_error", "invalid_api_key", "Incorrect API key provided.".to_owned()),
        402 => ("billing_error", "insufficient_quota", "Insufficient Balance".to_owned()),
        403 => ("permission_error", "forbidden", "Your key may not do this.".to_owned()),
        404 => ("not_found_error", "model_not_found", model_not_found(kind, model)),
        429 => (
            "rate_limit_error",
            "rate_limit_exceeded",
            "This request would exceed your rate limit.".to_owned(),
        ),
        529 => ("overloaded_error", "overloaded", "Overloaded".to_owned()),
        _ => ("api_error", "internal_error", "Internal server error".to_owned()),
    };
    match kind {
        BodyFormat::Chat | BodyFormat::Responses => {
            json!({ "error": { "message": message, "type": name, "param": null, "code": code } })
        }
        _ => json!({ "type": "error", "error": { "type": name, "message": message } }),
    }
}

fn model_not_found(kind: BodyFormat, model: &str) -> String {
    match kind {
        BodyFormat::Anthropic => format!("model: {model}"),
        _ => format!("The model `{model}` does not exist or you do not have access to it."),
    }
}
