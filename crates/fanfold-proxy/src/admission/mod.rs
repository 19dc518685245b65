//! Admission: connection slots, the access token, memory for bodies, and a timeout for clients that stop reading.

pub(crate) mod token;
pub(crate) mod connections;
pub(crate) mod body_quota;
pub(crate) mod fold_slots;
pub(crate) mod write_timeout;

use axum::extract::Request;
use http::StatusCode;

use crate::admission::token::Token;
use crate::error_reply::ErrorReply;
use crate::local;

/// Checks the token of a request and removes it. Without a token, local routes are closed to web pages.
pub(crate) fn authorize(token: Option<&Token>, request: &mut Request) -> Result<(), ErrorReply> {
    let path = request.uri().path();
    let is_local = local::is_local(path);
    // The health route needs no token.
    let token = token.filter(|_| path != local::HEALTH);
    match token {
        Some(token) if !token::take_token(token, request.headers_mut()) => Err(ErrorReply::new(
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong",
            "send it as `x-fanfold-token: TOKEN`",
        )),
        None if is_local && token::is_from_web_page(request.headers()) => Err(ErrorReply::new(
            StatusCode::FORBIDDEN,
            "this route is only for programs on this machine",
            "use the host name localhost or 127.0.0.1",
        )),
        _ => Ok(()),
    }
}
