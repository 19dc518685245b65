//! Sending: a prepared body goes to the provider, and goes again in another form, or folded harder, if it is refused.

pub(crate) mod http_clients;
pub(crate) mod call;
pub(crate) mod response_start;
mod passthrough;
mod retries;

use fanfold_wire::Format;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, HeaderValue};

pub(crate) use self::passthrough::{pass_through, pass_unread};
use crate::error_reply::ErrorReply;
use crate::meter::{Exit, RequestMeter};
use crate::prepare::PreparedRequest;
use crate::prepare::prepared_body::PreparedBody;
use crate::receive::turn_memory::TurnMemory;
use crate::send::call::{CallError, ProviderCall};
use crate::send::response_start::ResponseStart;

/// A request that the provider answered.
pub(crate) struct AnsweredRequest {
    pub(crate) format: Format,
    pub(crate) start: ResponseStart,
    /// The body that was answered.
    pub(crate) prepared: PreparedBody,
    pub(crate) memory: Option<TurnMemory>,
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

/// Sends a request, with retries if the provider refuses its body.
pub(crate) async fn send(
    call: &ProviderCall,
    request: PreparedRequest,
    meter: &mut RequestMeter,
) -> Result<AnsweredRequest, SendFailure> {
    let PreparedRequest { format, received, conversation, prepared } = request;
    let Some(conversation) = conversation else {
        let start = retries::send_once(call, &received, &prepared, format, meter).await?;
        return Ok(AnsweredRequest { format, start, prepared, memory: None });
    };
    let sender = retries::Sender { call, received: &received, conversation: &conversation };
    let retries::Response { start, prepared } = sender.send(prepared, meter).await?;
    Ok(AnsweredRequest { format, start, prepared, memory: conversation.memory.clone() })
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
