//! HTTP for MCP, with an end to what is read: a server that sends megabytes is not listened to.

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

/// The longest answer that is read.
pub(crate) const LONGEST: usize = 1 << 20;

const SESSION: &str = "mcp-session-id";
const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

/// A client that reads no more than it wants.
#[derive(Clone)]
pub(crate) struct LimitedHttpClient(pub(crate) reqwest::Client);

type Failed = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl StreamableHttpClient for LimitedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        let body = serde_json::to_vec(&message).map_err(|error| unexpected(error.to_string()))?;
        let mut request = self.0.post(&*uri).header(ACCEPT, format!("{JSON}, {STREAM}")).body(body);
        request = request.header(CONTENT_TYPE, JSON);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session) = &session {
            request = request.header(SESSION, &**session);
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
        let (kind, own_session) = (header("content-type").unwrap_or_default(), header(SESSION));
        if status.is_success() && kind.starts_with(STREAM) {
            return Ok(StreamableHttpPostResponse::Sse(events(response), own_session));
        }
        let body = read(response).await.map_err(|error| unexpected(error.to_string()))?;
        match serde_json::from_slice(&body) {
            Ok(answer) if status.is_success() => Ok(StreamableHttpPostResponse::Json(answer, own_session)),
            // What is told is read by nobody, so it need not be answered well.
            _ if status.is_success() && !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            _ => Err(unexpected(format!("status {status}, and no answer in JSON"))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<(), Failed> {
        self.0.delete_session(uri, session, key, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        self.0.get_stream_with_max_sse_event_size(uri, session, last, key, headers, LONGEST).await
    }
}

fn unexpected(words: String) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(words.into())
}

/// The events of an answer, up to the limit.
fn events(response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
    let mut n_bytes = 0;
    let bytes = response.bytes_stream().map_err(std::io::Error::other).map(move |chunk| {
        let chunk = chunk?;
        n_bytes += chunk.len();
        if n_bytes > LONGEST { Err(std::io::Error::other(TooLong)) } else { Ok(chunk) }
    });
    SseStream::from_bytes_stream(bytes).boxed()
}

/// Why a body was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// It broke off.
    #[error(transparent)]
    Broken(#[from] reqwest::Error),
}

/// More than is read.
#[derive(Debug, thiserror::Error)]
#[error("its answer is longer than {LONGEST} bytes")]
pub(crate) struct TooLong;

/// A body, if it is not too long.
pub(crate) async fn read(mut response: reqwest::Response) -> Result<Vec<u8>, ReadError> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > LONGEST {
            return Err(TooLong.into());
        }
    }
    Ok(body)
}
