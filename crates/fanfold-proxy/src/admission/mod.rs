//! Admission: the access token, web pages, request slots, and memory and threads for bodies.

pub(crate) mod request_slot;
pub(crate) mod body_quota;
pub(crate) mod fold_slots;

use axum::extract::Request;
use fanfold_http::{Token, WebAccess};
use http::StatusCode;

use crate::error_reply::ErrorReply;
use crate::local;

/// Checks the token of a request and removes it. Without a token, the proxy is closed to web pages and other hosts.
pub(crate) fn authorize(
    token: Option<&Token>,
    web_access: &WebAccess,
    request: &mut Request,
) -> Result<(), ErrorReply> {
    let Some(token) = token else {
        let (uri, headers) = (request.uri(), request.headers());
        let changes_session = uri.path().starts_with(local::api::PATH) && !request.method().is_safe();
        let mut checked = web_access.check(uri, headers);
        if changes_session {
            checked = checked.and_then(|()| web_access.check_change(uri, headers));
        }
        return checked.map_err(|refusal| {
            tracing::debug!(%refusal, "request refused");
            ErrorReply::new(StatusCode::FORBIDDEN, refusal.to_string(), refusal.hint())
        });
    };
    // A page cannot know the token, so a request that has it is not checked further. The health route needs none.
    if token.take(request.headers_mut()) || request.uri().path() == local::HEALTH {
        return Ok(());
    }
    let hint = "send it as `x-fanfold-token: TOKEN`";
    Err(ErrorReply::new(StatusCode::UNAUTHORIZED, "the token is missing or wrong", hint))
}
