//! MCP over HTTP with a size limit: an oversized answer is an error instead of megabytes in memory.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

/// Maximum size of an answer in bytes.
pub(crate) const MAX_ANSWER_BYTES: usize = 1 << 20;

const SESSION_HEADER: &str = "mcp-session-id";
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// An HTTP client that limits the size of answers.
#[derive(Clone)]
pub(crate) struct LimitedHttpClient(pub(crate) reqwest::Client);

type McpHttpError = StreamableHttpError<reqwest::Error>;
type CustomHeaders = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for LimitedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: CustomHeaders,
    ) -> Result<StreamableHttpPostResponse, McpHttpError> {
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        let body = serde_json::to_vec(&message).map_err(|error| unexpected(error.to_string()))?;
        let mut request = self.0.post(&*uri).header(ACCEPT, format!("{JSON}, {EVENT_STREAM}")).body(body);
        request = request.header(CONTENT_TYPE, JSON);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session) = &session {
            request = request.header(SESSION_HEADER, &**session);
        }
        let response = request.send().await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        let header = |name: &str| response.headers().get(name)?.to_str().ok().map(str::to_owned);
        let (kind, new_session) = (header("content-type").unwrap_or_default(), header(SESSION_HEADER));
        if status.is_success() && kind.starts_with(EVENT_STREAM) {
            return Ok(StreamableHttpPostResponse::Sse(limited_events(response), new_session));
        }
        let body = read_body(response).await.map_err(|error| unexpected(error.to_string()))?;
        match serde_json::from_slice(&body) {
            Ok(answer) if status.is_success() => Ok(StreamableHttpPostResponse::Json(answer, new_session)),
            // Nothing reads the answer to a notification, so any body is accepted.
            _ if status.is_success() && !is_request => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(unexpected(format!("status {status}, and the body is not JSON"))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        key: Option<String>,
        headers: CustomHeaders,
    ) -> Result<(), McpHttpError> {
        self.0.delete_session(uri, session, key, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        key: Option<String>,
        headers: CustomHeaders,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, McpHttpError> {
        self.0.get_stream_with_max_sse_event_size(uri, session, last, key, headers, MAX_ANSWER_BYTES).await
    }
}

fn unexpected(message: String) -> McpHttpError {
    StreamableHttpError::UnexpectedServerResponse(message.into())
}

/// The events of an answer, up to the size limit.
fn limited_events(response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut n_bytes = 0;
    let bytes = response.bytes_stream().map_err(std::io::Error::other).map(move |chunk| {
        let chunk = chunk?;
        n_bytes += chunk.len();
        if n_bytes > MAX_ANSWER_BYTES { Err(std::io::Error::other(TooLong)) } else { Ok(chunk) }
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    /// It exceeds the size limit.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The connection broke.
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
}

/// The size limit was exceeded.
#[derive(Debug, thiserror::Error)]
#[error("its answer is longer than {MAX_ANSWER_BYTES} bytes")]
pub(crate) struct TooLong;

/// Reads a body up to the size limit.
pub(crate) async fn read_body(mut response: reqwest::Response) -> Result<Vec<u8>, BodyError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_ANSWER_BYTES {
            return Err(TooLong.into());
        }
    }
    Ok(body)
}
