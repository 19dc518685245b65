//! Sending: a prepared body goes to the provider, and goes again in another form, or folded harder, if it is refused.

pub(crate) mod http_clients;
pub(crate) mod call;
pub(crate) mod response_start;
mod passthrough;
mod retries;

use std::sync::Arc;

use bytes::Bytes;
use fanfold_wire::Format;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};

pub(crate) use self::passthrough::{pass_through, pass_unread};
use crate::error_reply::ErrorReply;
use crate::meter::{Exit, RequestMeter};
use crate::prepare::Conversation;
use crate::prepare::prepared_body::PreparedBody;
use crate::send::call::{CallError, ProviderCall};
use crate::send::response_start::ResponseStart;

/// The received body, perhaps compressed.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    pub(crate) format: Format,
}

/// A request that the provider answered.
pub(crate) struct SentRequest {
    pub(crate) start: ResponseStart,
    /// The body that was answered.
    pub(crate) prepared: PreparedBody,
}

/// A request without a response.
pub(crate) struct SendFailure {
    exit: Exit,
    error: ErrorReply,
}

impl SendFailure {
    /// Ends the metering of the request. Returns the error for the client.
    pub(crate) fn report(self, meter: RequestMeter) -> ErrorReply {
        meter.end(self.exit);
        self.error
    }
}

impl From<CallError> for SendFailure {
    fn from(error: CallError) -> SendFailure {
        SendFailure { exit: error.exit, error: error.error }
    }
}

/// Sends a body, with retries if the provider refuses it.
pub(crate) async fn send(
    call: &ProviderCall,
    received: &Received,
    conversation: Option<Arc<Conversation>>,
    prepared: PreparedBody,
    meter: &mut RequestMeter,
) -> Result<SentRequest, SendFailure> {
    let Some(conversation) = conversation else {
        let start = retries::send_once(call, received, &prepared, meter).await?;
        return Ok(SentRequest { start, prepared });
    };
    retries::Sender { call, received, conversation: &conversation }.send(prepared, meter).await
}

/// The headers of a request with a prepared body.
pub(crate) fn request_headers(
    call: &ProviderCall,
    prepared: &PreparedBody,
    meter: &RequestMeter,
) -> HeaderMap {
    let mut headers = call.headers.clone();
    // The proxy reads the response, so it must not be compressed.
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(traceparent) = meter.traceparent().and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.insert("traceparent", traceparent);
    }
    if prepared.body.is_some() {
        headers.remove(CONTENT_ENCODING);
    }
    headers
}
