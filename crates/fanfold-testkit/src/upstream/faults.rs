//! What goes wrong, and what a provider says then.

use std::time::Duration;

use serde_json::{Value, json};

use crate::bodies::Kind;

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum Fault {
    /// No answer for so long; then all is well.
    Stall(Duration),
    /// The connection is closed without a word.
    HangUp,
    /// The connection is closed after so many events of a stream, or in the middle of a whole answer.
    Die(usize),
    /// A stream ends in good order after so many events, before its answer has.
    Cut(usize),
    /// After so many events of a stream, one that is an error: overloaded. A whole answer is that error, with status 200.
    Late(usize),
    /// An answer of status 200 that is none.
    Garbage,
    /// Bytes that are not HTTP.
    NoHttp,
    /// An event, or a part of a whole answer, every so often.
    Drip(Duration),
    /// A status with a body and the headers of such answers: 401, 402, 403, 404, 429, 500, 529.
    Status(u16),
    /// A status, and exactly this body.
    Answer(u16, String),
    /// A status with these headers and this body.
    With(u16, Vec<(String, String)>, String),
    /// A page of a gateway, with this status.
    Page(u16),
    /// The model says this instead, in good order.
    Say(String),
    /// The model stops for this reason, in its API's word.
    Stop(String),
}

impl Fault {
    /// Whether the model answers all the same, in some way.
    pub(super) fn is_of_an_answer(&self) -> bool {
        match self {
            Fault::Stall(_)
            | Fault::Die(_)
            | Fault::Cut(_)
            | Fault::Late(_)
            | Fault::Drip(_)
            | Fault::Say(_)
            | Fault::Stop(_) => true,
            Fault::HangUp
            | Fault::Garbage
            | Fault::NoHttp
            | Fault::Status(_)
            | Fault::Answer(..)
            | Fault::With(..)
            | Fault::Page(_) => false,
        }
    }
}

/// The page of a gateway.
pub(super) fn page(status: u16) -> String {
    format!(
        "<!DOCTYPE html>\n<html><head><title>{status} from the gateway</title><style>p {{ color: red }}</style></head>\
         <body><h1>Sorry</h1><p>Ray ID: 0123456789</p></body></html>"
    )
}

/// What each API says with a status.
pub(super) fn error(kind: Kind, status: u16, model: &str) -> Value {
    let (name, code, message) = match status {
        401 => ("authentication_error", "invalid_api_key", "Incorrect API key provided.".to_owned()),
        402 => ("billing_error", "insufficient_quota", "Insufficient Balance".to_owned()),
        403 => ("permission_error", "forbidden", "Your key may not do this.".to_owned()),
        404 => ("not_found_error", "model_not_found", no_model(kind, model)),
        429 => (
            "rate_limit_error",
            "rate_limit_exceeded",
            "This request would exceed your rate limit.".to_owned(),
        ),
        529 => ("overloaded_error", "overloaded", "Overloaded".to_owned()),
        _ => ("api_error", "internal_error", "Internal server error".to_owned()),
    };
    match kind {
        Kind::Chat | Kind::Responses => {
            json!({ "error": { "message": message, "type": name, "param": null, "code": code } })
        }
        _ => json!({ "type": "error", "error": { "type": name, "message": message } }),
    }
}

fn no_model(kind: Kind, model: &str) -> String {
    match kind {
        Kind::Anthropic => format!("model: {model}"),
        _ => format!("The model `{model}` does not exist or you do not have access to it."),
    }
}
