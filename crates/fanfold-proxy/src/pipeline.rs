//! One request, from acceptance to the last byte of its response.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;

use crate::error_reply::ErrorReply;
use crate::prepare::Attempt;
use crate::prepare::prepared_body::PreparedBody;
use crate::receive::RoutedRequest;
use crate::receive::read_body::ReadBody;
use crate::shared::Shared;
use crate::{admission, local, prepare, receive, reply, send};

/// Handles a request. This is the only caller of the stages.
pub(crate) async fn handle(shared: Arc<Shared>, request: Request) -> Response {
    respond(&shared, request).await.unwrap_or_else(ErrorReply::into_response)
}

async fn respond(shared: &Arc<Shared>, mut request: Request) -> Result<Response, ErrorReply> {
    admission::authorize(shared.token.as_ref(), &mut request)?;
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
    let session_name = receive::session_name(&parts.headers);
    let decoded = receive::decode(shared, &call.headers, &body, format, session_name.as_deref()).await;
    let (conversation, prepared) = match decoded {
        Ok(decoded) => {
            let (conversation, parsed) = prepare::conversation(&call, &mut meter, decoded, session_name);
            let prepared = prepare::fold(shared, &conversation, Attempt::first(parsed)).await;
            (Some(conversation), prepared)
        }
        Err(reason) => (None, PreparedBody::unchanged(reason)),
    };
    let received = send::Received { bytes: body.bytes, format };
    let memory = conversation.as_ref().and_then(|conversation| conversation.memory.clone());
    let sent = send::send(&call, &received, conversation, prepared, &mut meter).await;
    match sent {
        Ok(sent) => Ok(reply::answer(call, format, sent, memory, meter).await),
        Err(failure) => Err(failure.report(meter)),
    }
}
