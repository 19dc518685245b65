//! Requests that are streamed to the provider without being read.

use axum::body::Body;
use axum::response::Response;
use fanfold_http::{BodyEnd, BodyObserver, ObservedBody};
use fanfold_wire::Format;
use http::header::CONTENT_LENGTH;
use http::request::Parts;

use crate::error_reply::ErrorReply;
use crate::meter::{Exit, RequestInfo, RequestMeter, shown_headers, shown_path};
use crate::outcome::BypassReason;
use crate::prepare::prepared_body::PreparedBody;
use crate::reply;
use crate::send::call::{ProviderCall, to_client};

/// Forwards a request that is not a conversation.
pub(crate) async fn pass_through(
    call: &ProviderCall,
    parts: &Parts,
    body: Body,
) -> Result<Response, ErrorReply> {
    call.shared.meter.count_pass_through();
    tracing::debug!(
        target: "fanfold::passed",
        method = %parts.method,
        path = shown_path(&parts.uri),
        headers = shown_headers(&parts.headers),
        "passed through"
    );
    let response = call.stream(body, parts.headers.get(CONTENT_LENGTH)).await;
    response.map(to_client).map_err(|error| error.error)
}

/// Forwards a conversation that is not held in memory.
pub(crate) async fn pass_unread(
    call: &ProviderCall,
    parts: &Parts,
    body: Body,
    format: Format,
    reason: BypassReason,
) -> Response {
    let prepared = PreparedBody::unchanged(reason);
    let traceparent = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
    let mut meter = call.shared.meter.start_request(&RequestInfo { format, model: None, traceparent });
    meter.set_outcome(prepared.outcome);
    let length = parts.headers.get(CONTENT_LENGTH);
    if let Some(n_bytes) = length.and_then(|length| length.to_str().ok()?.parse().ok()) {
        meter.start_call(n_bytes);
    }
    let mut response = match call.stream(body, length).await {
        Ok(response) => {
            meter.first_byte(response.status().as_u16());
            let observer = EndObserver { meter: Some(meter) };
            to_client(response).map(|body| Body::new(ObservedBody::new(body, observer)))
        }
        Err(error) => {
            meter.end(error.exit);
            error.error.into_response()
        }
    };
    reply::add_outcome_headers(&mut response, &prepared);
    response
}

/// Ends the metering of a response that is not read.
struct EndObserver {
    meter: Option<RequestMeter>,
}

impl BodyObserver for EndObserver {
    fn on_bytes(&mut self, _bytes: &[u8]) {}

    fn on_end(&mut self, end: BodyEnd) {
        let exit = match end {
            BodyEnd::Complete => Exit::Done,
            BodyEnd::BrokenOff => Exit::BrokenOff,
            BodyEnd::ClientGone => Exit::ClientGone,
        };
        if let Some(meter) = self.meter.take() {
            meter.end(exit);
        }
    }
}
