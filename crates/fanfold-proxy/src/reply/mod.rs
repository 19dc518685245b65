//! Replying: the answer goes to the client, without the recalls that the proxy serves and without quoted memory.

mod memory_filter;
mod originals;
mod recall_rounds;
mod usage_report;

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use fanfold_http::{BodyEnd, BodyObserver, ObservedBody};
use fanfold_wire::Format;
use fanfold_wire::reply::{ReplyJoiner, ReplyReader, Transport};
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::error_reply::ErrorReply;
use crate::meter::{Exit, RequestMeter};
use crate::prepare::prepared_body::PreparedBody;
use crate::receive::SESSION;
use crate::reply::recall_rounds::RecallRounds;
use crate::reply::usage_report::UsageReport;
use crate::send::call::{ProviderCall, to_client};
use crate::send::http_clients::root_cause;
use crate::send::response_start::ResponseStart;
use crate::send::{AnsweredRequest, request_headers};

/// The response header with the outcome of the body.
const OUTCOME: &str = "x-fanfold";

/// The response for the client.
pub(crate) async fn answer(call: ProviderCall, answered: AnsweredRequest, meter: RequestMeter) -> Response {
    let AnsweredRequest { format, start, prepared, memory } = answered;
    let response = observed_answer(call, format, start, prepared, meter).await;
    match memory {
        Some(memory) => memory_filter::filter(memory, response, format).await,
        None => response,
    }
}

/// The answer of the provider, observed on its way for its usage and its end. Recalls in it are served.
async fn observed_answer(
    call: ProviderCall,
    format: Format,
    start: ResponseStart,
    prepared: PreparedBody,
    mut meter: RequestMeter,
) -> Response {
    meter.first_byte(start.response.status().as_u16());
    let headers = request_headers(&call, &prepared, &meter);
    let mut response = to_client(start.response);
    add_outcome_headers(&mut response, &prepared);
    let is_read = response.status().is_success() && is_readable(response.headers());
    let transport = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let transport = Transport::from_content_type(transport);
    let report = UsageReport::new(Arc::clone(&call.shared), meter, &prepared);
    let request = prepared.body.as_ref().filter(|_| prepared.has_tool && is_read);
    let request = request.and_then(|body| str::from_utf8(body).ok());
    let joiner = request.and_then(|request| ReplyJoiner::new(format, transport, request));
    if let (Some(joiner), Some(session)) = (joiner, prepared.session.clone()) {
        let max_original_bytes = free_bytes(&prepared);
        let rounds = RecallRounds::new(call, headers, format, session, joiner, max_original_bytes, report);
        return match transport {
            Transport::Stream => {
                response.headers_mut().remove(CONTENT_LENGTH);
                response.map(|body| Body::from_stream(rounds.stream(body)))
            }
            Transport::Whole => rounds.whole(response).await,
        };
    }
    let observer = AnswerObserver { reply: is_read.then(|| ReplyReader::new(format, transport)), report };
    response.map(|body| Body::new(ObservedBody::new(body, observer)))
}

/// How many bytes of originals fit into the window: a token is at least about two bytes, so this is a lower bound.
fn free_bytes(prepared: &PreparedBody) -> usize {
    let left = prepared.counted.map_or(0, |counted| counted.window.0.saturating_sub(counted.tokens.0));
    usize::try_from(left).unwrap_or(usize::MAX)
}

/// Adds the outcome of the body and its session to a response.
pub(crate) fn add_outcome_headers(response: &mut Response, prepared: &PreparedBody) {
    let session = prepared.session.as_ref().map(|session| session.0.clone());
    for (name, value) in [(OUTCOME, Some(prepared.outcome.to_string())), (SESSION, session)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// Returns whether a response is not compressed.
fn is_readable(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity")
}

/// The response if an unstreamed answer breaks off before any of it is sent. It keeps the headers of the provider, such
/// as its request id.
fn broken_off(response: &Response, error: &axum::Error) -> Response {
    let message = format!("the answer of the provider broke off: {}", root_cause(error));
    let mut reply =
        ErrorReply::new(StatusCode::BAD_GATEWAY, message, "send the request again").into_response();
    for (name, value) in response.headers() {
        let is_of_body = [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING].contains(name);
        if !is_of_body && *name != OUTCOME {
            reply.headers_mut().append(name, value.clone());
        }
    }
    reply
}

/// Returns whether a chunk is only white space, which providers send to keep a connection alive.
fn is_blank(chunk: &[u8]) -> bool {
    chunk.trim_ascii().is_empty()
}

/// Reads an answer on its way to the client.
struct AnswerObserver {
    reply: Option<ReplyReader>,
    report: UsageReport,
}

impl BodyObserver for AnswerObserver {
    fn on_bytes(&mut self, bytes: &[u8]) {
        if let Some(reply) = &mut self.reply {
            reply.feed(bytes);
        }
    }

    fn on_end(&mut self, end: BodyEnd) {
        let reply = self.reply.take().map(ReplyReader::end);
        let usage = reply.as_ref().and_then(|reply| reply.usage);
        // A client may close the connection before it has read the last byte.
        let is_complete = reply.is_some_and(|reply| reply.is_ended);
        let exit = match end {
            BodyEnd::Complete => Exit::Done,
            BodyEnd::ClientGone if is_complete => Exit::Done,
            BodyEnd::ClientGone => Exit::ClientGone,
            BodyEnd::BrokenOff => Exit::BrokenOff,
        };
        self.report.end(usage, exit);
    }
}
