//! One request and its answer, with a clock on each part of it.

use std::error::Error as _;
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout_at};

use crate::again;
use crate::classify::{Rejection, fault_of};
use crate::endpoint::{Style, Timeouts};
use crate::fault::{Class, Fault};
use crate::hearing::{Answer, Hearing};
use crate::key::Secret;

/// So much of an error is read.
const LONGEST_ERROR: usize = 256 << 10;
/// So long the usage is waited for when the model has ended, and the words of an error.
const REST: Duration = Duration::from_secs(3);

/// One request.
pub(crate) struct Request<'a> {
    pub(crate) sender: &'a reqwest::Client,
    pub(crate) style: Style,
    pub(crate) is_azure: bool,
    pub(crate) url: Url,
    pub(crate) secret: Option<&'a Secret>,
    pub(crate) body: String,
    pub(crate) timeouts: &'a Timeouts,
    /// When all of it has to be over.
    pub(crate) until: Instant,
}

/// What is being waited for.
#[derive(Clone, Copy)]
enum Clock {
    First,
    Idle,
}

/// Whoever hears the words of an answer as they come.
pub(crate) type Listener<'a> = &'a mut (dyn FnMut(&str) + Send);

impl Request<'_> {
    /// Sends it, and hears the answer to its end.
    pub(crate) async fn run(&self, listener: Listener<'_>) -> Result<Answer, Fault> {
        let began = Instant::now();
        let request = self.sender.post(self.url.clone()).headers(self.headers()).body(self.body.clone());
        let first = self.by(began + self.timeouts.first);
        let sent = timeout_at(first, request.send()).await;
        let response =
            sent.map_err(|_| self.silent(first, Clock::First))?.map_err(|error| self.not_sent(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(self.rejected(response).await);
        }
        self.hear(response, first, listener).await
    }

    async fn hear(
        &self,
        mut response: Response,
        first: Instant,
        listener: Listener<'_>,
    ) -> Result<Answer, Fault> {
        let mut hearing = Hearing::new(self.style.format());
        let (mut most, mut clock) = (first, Clock::First);
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
                        format!("it broke off after {} bytes: {}", hearing.n_bytes(), cause_of(&error));
                    return Err(Fault::new(Class::Broken, words).passing());
                }
                Err(_) => return Err(self.silent(most, clock)),
            }
            let patience = if hearing.is_ended() { REST.min(self.timeouts.idle) } else { self.timeouts.idle };
            (most, clock) = (self.by(Instant::now() + patience), Clock::Idle);
        }
        let (answer, rest) = hearing.end()?;
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
    fn by(&self, moment: Instant) -> Instant {
        moment.min(self.until)
    }

    fn silent(&self, most: Instant, clock: Clock) -> Fault {
        let words = match clock {
            _ if most >= self.until => format!("it was not done within {}", told(self.timeouts.total)),
            Clock::First => format!("no answer began within {}", told(self.timeouts.first)),
            Clock::Idle => format!("nothing came for {} in the middle of it", told(self.timeouts.idle)),
        };
        Fault::new(Class::Timeout, words)
    }

    fn not_sent(&self, error: &reqwest::Error) -> Fault {
        let cause = cause_of(error);
        let small = cause.to_lowercase();
        if error.is_timeout() {
            let words = format!("no connection within {}", told(self.timeouts.connect));
            return Fault::new(Class::Timeout, words);
        }
        if small.contains("invalid http") {
            return Fault::new(Class::Broken, format!("what answers there does not speak HTTP: {cause}"));
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
        let fault = Fault::new(Class::Connection, words);
        if is_tls { fault } else { fault.passing() }
    }

    async fn rejected(&self, mut response: Response) -> Fault {
        let status = response.status().as_u16();
        let (retry_after, should_retry) =
            (again::wish(response.headers()), again::should_retry(response.headers()));
        let most = self.by(Instant::now() + REST);
        let mut body = Vec::new();
        // What is missing of its words does not change the status.
        while let Ok(Ok(Some(bytes))) = timeout_at(most, response.chunk()).await {
            body.extend_from_slice(&bytes);
            if body.len() > LONGEST_ERROR {
                break;
            }
        }
        fault_of(&Rejection { status, body: &body, retry_after, should_retry })
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
pub(crate) fn cause_of(error: &reqwest::Error) -> String {
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

fn told(time: Duration) -> String {
    if time < Duration::from_secs(2) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}
