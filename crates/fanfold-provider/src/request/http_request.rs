//! One HTTP request and its answer, with a timeout for each phase.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout_at};

use crate::answer::reader::{AnswerReader, ModelAnswer};
use crate::endpoint::Timeouts;
use crate::endpoint::key::ApiKey;
use crate::endpoint::url::ProviderUrl;
use crate::error::classify::{Rejection, error_from_response};
use crate::error::retry_after;
use crate::error::{ErrorClass, ProviderError};

/// Maximum number of bytes read of an error response.
const MAX_ERROR_BYTES: usize = 256 << 10;
/// Time to wait for usage data after the end of the model's text, and for the body of an error response.
const TRAILER_TIMEOUT: Duration = Duration::from_secs(3);

/// One request.
pub(crate) struct HttpRequest<'a> {
    pub(crate) http: &'a reqwest::Client,
    pub(crate) provider_url: &'a ProviderUrl,
    pub(crate) url: Url,
    pub(crate) secret: Option<&'a ApiKey>,
    pub(crate) body: String,
    pub(crate) timeouts: &'a Timeouts,
    /// The deadline of all attempts.
    pub(crate) deadline: Instant,
}

/// The phase that a timeout belongs to.
#[derive(Clone, Copy)]
enum WaitPhase {
    FirstByte,
    Idle,
}

impl HttpRequest<'_> {
    /// Sends the request and reads the whole answer.
    pub(crate) async fn send(&self) -> Result<ModelAnswer, ProviderError> {
        let started = Instant::now();
        let request = self.http.post(self.url.clone()).headers(self.headers()).body(self.body.clone());
        let first = self.at_most_deadline(started + self.timeouts.first);
        let result = timeout_at(first, request.send()).await;
        let response = result
            .map_err(|_| self.timeout_error(first, WaitPhase::FirstByte))?
            .map_err(|error| self.send_error(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.response_error(response).await);
        }
        self.read_answer(response, first).await
    }

    async fn read_answer(
        &self,
        mut response: Response,
        first: Instant,
    ) -> Result<ModelAnswer, ProviderError> {
        let mut reader = AnswerReader::new(self.provider_url.provider.prompt_format);
        let (mut limit, mut phase) = (first, WaitPhase::FirstByte);
        while !reader.is_done() {
            match timeout_at(limit, response.chunk()).await {
                Ok(Ok(Some(bytes))) => reader.feed(&bytes)?,
                Ok(Ok(None)) => break,
                // After the end of the model's text the answer is complete, whatever happens to the connection.
                _ if reader.is_ended() => break,
                Ok(Err(error)) => {
                    let message = format!(
                        "the connection broke after {} bytes: {}",
                        reader.n_bytes(),
                        root_cause(&error)
                    );
                    return Err(ProviderError::new(ErrorClass::Broken, message).transient());
                }
                Err(_) => return Err(self.timeout_error(limit, phase)),
            }
            let wait =
                if reader.is_ended() { TRAILER_TIMEOUT.min(self.timeouts.idle) } else { self.timeouts.idle };
            (limit, phase) = (self.at_most_deadline(Instant::now() + wait), WaitPhase::Idle);
        }
        reader.finish()
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = headers(self.provider_url, self.secret);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers
    }

    /// A point in time, limited to the deadline.
    fn at_most_deadline(&self, time: Instant) -> Instant {
        time.min(self.deadline)
    }

    fn timeout_error(&self, limit: Instant, phase: WaitPhase) -> ProviderError {
        let message = match phase {
            _ if limit >= self.deadline => {
                format!("the request was not finished within {}", format_duration(self.timeouts.total))
            }
            WaitPhase::FirstByte => {
                format!("no answer began within {}", format_duration(self.timeouts.first))
            }
            WaitPhase::Idle => {
                format!("the answer stalled for {}", format_duration(self.timeouts.idle))
            }
        };
        ProviderError::new(ErrorClass::Timeout, message)
    }

    fn send_error(&self, error: &reqwest::Error) -> ProviderError {
        let cause = root_cause(error);
        let lower = cause.to_lowercase();
        if error.is_timeout() {
            let message = format!("no connection within {}", format_duration(self.timeouts.connect));
            return ProviderError::new(ErrorClass::Timeout, message);
        }
        if lower.contains("invalid http") {
            return ProviderError::new(
                ErrorClass::Broken,
                format!("the server does not speak HTTP: {cause}"),
            );
        }
        let is_tls =
            lower.contains("certificate") || lower.contains("tls") || lower.contains("corrupt message");
        let message = match () {
            () if lower.contains("dns") || lower.contains("lookup address") => {
                format!("unknown host name: {cause}")
            }
            () if is_tls => format!("TLS failed: {cause}"),
            () if error.is_connect() => cause,
            () => format!("the connection closed before an answer: {cause}"),
        };
        let error = ProviderError::new(ErrorClass::Connection, message);
        if is_tls { error } else { error.transient() }
    }

    async fn response_error(&self, mut response: Response) -> ProviderError {
        let status = response.status().as_u16();
        let (retry_after, should_retry) =
            (retry_after::requested_delay(response.headers()), retry_after::should_retry(response.headers()));
        let limit = self.at_most_deadline(Instant::now() + TRAILER_TIMEOUT);
        let mut body = Vec::new();
        // The status is known even if the body is incomplete.
        while let Ok(Ok(Some(bytes))) = timeout_at(limit, response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_ERROR_BYTES {
                break;
            }
        }
        error_from_response(&Rejection { status, body: &body, retry_after, should_retry })
    }
}

/// The headers of all requests to a provider.
pub(crate) fn headers(url: &ProviderUrl, secret: Option<&ApiKey>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("fanfold/", env!("CARGO_PKG_VERSION"))));
    if let Some((name, value)) = url.provider.version_header {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let Some(secret) = secret else { return headers };
    let header = url.key_header();
    if let Ok(mut value) = HeaderValue::try_from(format!("{}{}", header.prefix, secret.reveal())) {
        value.set_sensitive(true);
        headers.insert(header.name, value);
    }
    headers
}

/// The root cause of an error. The error itself contains the URL, which may have credentials.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    let (Some(first), Some(last)) = (causes.first(), causes.last()) else {
        return "the connection failed".to_owned();
    };
    if last.contains(first.as_str()) || causes.len() == 1 { last.clone() } else { format!("{first}: {last}") }
}

fn format_duration(time: Duration) -> String {
    if time < Duration::from_secs(2) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}
