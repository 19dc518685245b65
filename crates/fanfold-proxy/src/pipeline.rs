//! One request, from acceptance to the last byte of its response.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;

use crate::error_reply::ErrorReply;
use crate::receive::RoutedRequest;
use crate::receive::read_body::ReadBody;
use crate::shared::Shared;
use crate::{admission, local, prepare, receive, reply, send};

/// Handles a request. This is the only caller of the stages.
pub(crate) async fn handle(shared: Arc<Shared>, request: Request) -> Response {
    respond(&shared, request).await.unwrap_or_else(ErrorReply::into_response)
}

async fn respond(shared: &Arc<Shared>, mut request: Request) -> Result<Response, ErrorReply> {
    admission::authorize(shared.token.as_ref(), &shared.web_access, &mut request)?;
    if local::is_local(request.uri().path()) {
        return Ok(local::answer(Arc::clone(shared), request).await);
    }
    let RoutedRequest { call, format, parts, body, slot } = receive::route_request(shared, request)?;
    let Some(format) = format else {
        slot.wait_for_stream(&body).await?;
        return send::pass_through(&call, &parts, body).await;
    };
    let body = receive::read(shared, body).await?;
    slot.wait_for_body(&body).await?;
    let body = match body {
        ReadBody::Whole(body) => body,
        ReadBody::Unread(stream, reason) => {
            return Ok(send::pass_unread(&call, &parts, stream, format, reason).await);
        }
    };
    let mut meter = receive::start_metering(&call, format);
    let received = receive::decode(&call, format, body, receive::session_name(&parts.headers)).await;
    let prepared = prepare::prepare(&call, received, &mut meter).await;
    match send::send(&call, prepared, &mut meter).await {
        Ok(answered) => Ok(reply::answer(call, answered, meter).await),
        Err(failure) => Err(failure.report(meter)),
    }
}
