//! One request and its answer, with a clock on each part of it.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout_at};

use crate::answer::reader::{AnswerReader, ModelAnswer};
use crate::endpoint::key::Secret;
use crate::endpoint::{Style, Timeouts};
use crate::error::classify::{Rejection, error_from_response};
use crate::error::retry_after;
use crate::error::{ErrorClass, ProviderError};

/// So much of an error is read.
const MAX_ERROR_BYTES: usize = 256 << 10;
/// So long the usage is waited for when the model has ended, and the words of an error.
const TRAILER_TIMEOUT: Duration = Duration::from_secs(3);

/// One request.
pub(crate) struct HttpRequest<'a> {
    pub(crate) http: &'a reqwest::Client,
    pub(crate) style: Style,
    pub(crate) is_azure: bool,
    pub(crate) url: Url,
    pub(crate) secret: Option<&'a Secret>,
    pub(crate) body: String,
    pub(crate) timeouts: &'a Timeouts,
    /// When all of it has to be over.
    pub(crate) deadline: Instant,
}

/// What is being waited for.
#[derive(Clone, Copy)]
enum WaitPhase {
    FirstByte,
    Idle,
}

/// Whoever hears the words of an answer as they come.
pub(crate) type TextSink<'a> = &'a mut (dyn FnMut(&str) + Send);

impl HttpRequest<'_> {
    /// Sends it, and hears the answer to its end.
    pub(crate) async fn send(&self, listener: TextSink<'_>) -> Result<ModelAnswer, ProviderError> {
        let began = Instant::now();
        let request = self.http.post(self.url.clone()).headers(self.headers()).body(self.body.clone());
        let first = self.capped(began + self.timeouts.first);
        let sent = timeout_at(first, request.send()).await;
        let response = sent
            .map_err(|_| self.timeout_error(first, WaitPhase::FirstByte))?
            .map_err(|error| self.send_error(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.response_error(response).await);
        }
        self.read_answer(response, first, listener).await
    }

    async fn read_answer(
        &self,
        mut response: Response,
        first: Instant,
        listener: TextSink<'_>,
    ) -> Result<ModelAnswer, ProviderError> {
        let mut hearing = AnswerReader::new(self.style.format());
        let (mut most, mut clock) = (first, WaitPhase::FirstByte);
        while !hearing.is_done() {
            match timeout_at(most, response.chunk()).await {
                Ok(Ok(Some(bytes))) => {
                    let piece = hearing.feed(&bytes)?;
                    if !piece.is_empty() {
                        listener(&piece);
                    }
                }
                Ok(Ok(None)) => break,
                // Whatever happens behind the end, the answer is there.
                _ if hearing.is_ended() => break,
                Ok(Err(error)) => {
                    let words =
                        format!("it broke off after {} bytes: {}", hearing.n_bytes(), root_cause(&error));
                    return Err(ProviderError::new(ErrorClass::Broken, words).transient());
                }
                Err(_) => return Err(self.timeout_error(most, clock)),
            }
            let patience =
                if hearing.is_ended() { TRAILER_TIMEOUT.min(self.timeouts.idle) } else { self.timeouts.idle };
            (most, clock) = (self.capped(Instant::now() + patience), WaitPhase::Idle);
        }
        let (answer, rest) = hearing.finish()?;
        if !rest.is_empty() {
            listener(&rest);
        }
        Ok(answer)
    }

    fn headers(&self) -> HeaderMap {
        let mut headers = headers(self.style, self.is_azure, self.secret);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers
    }

    /// A moment, or the end of everything if that comes first.
    fn capped(&self, moment: Instant) -> Instant {
        moment.min(self.deadline)
    }

    fn timeout_error(&self, most: Instant, clock: WaitPhase) -> ProviderError {
        let words = match clock {
            _ if most >= self.deadline => {
                format!("it was not done within {}", format_duration(self.timeouts.total))
            }
            WaitPhase::FirstByte => {
                format!("no answer began within {}", format_duration(self.timeouts.first))
            }
            WaitPhase::Idle => {
                format!("nothing came for {} in the middle of it", format_duration(self.timeouts.idle))
            }
        };
        ProviderError::new(ErrorClass::Timeout, words)
    }

    fn send_error(&self, error: &reqwest::Error) -> ProviderError {
        let cause = root_cause(error);
        let small = cause.to_lowercase();
        if error.is_timeout() {
            let words = format!("no connection within {}", format_duration(self.timeouts.connect));
            return ProviderError::new(ErrorClass::Timeout, words);
        }
        if small.contains("invalid http") {
            return ProviderError::new(
                ErrorClass::Broken,
                format!("what answers there does not speak HTTP: {cause}"),
            );
        }
        let is_tls =
            small.contains("certificate") || small.contains("tls") || small.contains("corrupt message");
        let words = match () {
            () if small.contains("dns") || small.contains("lookup address") => {
                format!("the name is not known: {cause}")
            }
            () if is_tls => format!("TLS fails: {cause}"),
            () if error.is_connect() => cause,
            () => format!("it hung up before it answered: {cause}"),
        };
        let fault = ProviderError::new(ErrorClass::Connection, words);
        if is_tls { fault } else { fault.transient() }
    }

    async fn response_error(&self, mut response: Response) -> ProviderError {
        let status = response.status().as_u16();
        let (retry_after, should_retry) =
            (retry_after::requested_delay(response.headers()), retry_after::should_retry(response.headers()));
        let most = self.capped(Instant::now() + TRAILER_TIMEOUT);
        let mut body = Vec::new();
        // What is missing of its words does not change the status.
        while let Ok(Ok(Some(bytes))) = timeout_at(most, response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > MAX_ERROR_BYTES {
                break;
            }
        }
        error_from_response(&Rejection { status, body: &body, retry_after, should_retry })
    }
}

/// The headers of every request.
pub(crate) fn headers(style: Style, is_azure: bool, secret: Option<&Secret>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("fanfold/", env!("CARGO_PKG_VERSION"))));
    if style == Style::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let Some(secret) = secret else { return headers };
    let (name, text) = match style {
        Style::Anthropic => ("x-api-key", secret.reveal().to_owned()),
        Style::OpenAi if is_azure => ("api-key", secret.reveal().to_owned()),
        Style::OpenAi => (AUTHORIZATION.as_str(), format!("Bearer {}", secret.reveal())),
    };
    if let Ok(mut value) = HeaderValue::try_from(text) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers
}

/// What is at the bottom of an error. The error itself names the address, with all that is in it.
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
