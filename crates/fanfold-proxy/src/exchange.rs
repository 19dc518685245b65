//! One request from start to end.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::Bytes;
use fanfold_wire::Format;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use reqwest::Url;
use tokio_util::task::TaskTracker;

use crate::arrival::{self, Arrived, NotArrived};
use crate::config::{Config, Limits};
use crate::desk::Desk;
use crate::encoding::{self, Packed};
use crate::fold::{Folder, Made, Reason, Sent, Wanted};
use crate::passing::{End, Passing, Watch};
use crate::server::ServeError;
use crate::trust::{self, Token};
use crate::upstream::{Senders, Upstream, Upstreams};
use crate::{headers, own, route};

/// The header by which a client names its session, and by which it is told.
const SESSION: &str = "x-fanfold-session";
/// The header that tells how a body left.
const LEFT: &str = "x-fanfold";

/// What all requests share.
pub(crate) struct Shared {
    upstreams: Upstreams,
    senders: Senders,
    pub(crate) folder: Folder,
    token: Option<Token>,
    pub(crate) limits: Limits,
    /// What is still done when an answer has gone.
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    pub(crate) fn new(config: &Config) -> Result<Shared, ServeError> {
        let desk = Arc::new(Desk::new(Arc::clone(&config.host)));
        Ok(Shared {
            upstreams: config.upstreams.clone(),
            senders: Senders::new(&config.limits)?,
            folder: Folder::new(desk, config.mode, &config.limits),
            token: config.token.clone(),
            limits: config.limits,
            tasks: TaskTracker::new(),
        })
    }
}

/// Answers a request: our own routes here, all others upstream.
pub(crate) async fn exchange(shared: Arc<Shared>, mut request: Request) -> Response {
    let path = request.uri().path();
    let is_own = path.starts_with(own::PREFIX);
    if path == "/fanfold/health" {
        return own::answer(StatusCode::OK, &serde_json::json!({ "ok": true }));
    }
    match &shared.token {
        Some(token) => {
            if !trust::has_token(token, request.headers_mut()) {
                let hint = "send it as `x-fanfold-token: TOKEN`";
                return own::error(StatusCode::UNAUTHORIZED, "the token is missing or wrong", hint);
            }
        }
        None if is_own && trust::is_from_a_page(request.headers()) => {
            let hint = "ask by the name localhost or 127.0.0.1";
            return own::error(StatusCode::FORBIDDEN, "this is for programs of this machine", hint);
        }
        None => {}
    }
    if is_own {
        return match request.uri().path() {
            "/fanfold/ready" => own::ready(shared).await,
            _ => own::error(StatusCode::NOT_FOUND, "there is no such route", "see /fanfold/health and /fanfold/ready"),
        };
    }
    match forward(&shared, request).await {
        Ok(response) | Err(response) => response,
    }
}

/// Sends a request upstream, folded if it is a conversation.
async fn forward(shared: &Arc<Shared>, request: Request) -> Result<Response, Response> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let style = route::style(path, &parts.headers);
    let upstream = shared.upstreams.choose(&parts.headers, style).map_err(|named| {
        let hint = "add it to `allowed` in the settings' [serve]";
        own::error(StatusCode::FORBIDDEN, &format!("`{named}` is not among the upstreams"), hint)
    })?;
    let asked = parts.uri.path_and_query().and_then(|path| upstream.target(path));
    let Some(url) = asked else {
        return Err(own::error(StatusCode::BAD_REQUEST, "the path is no path", "begin it with a slash"));
    };
    let call = Call { shared, upstream, method: parts.method, url, headers: headers::upstream(&parts.headers) };
    let Some(format) = route::folded(&call.method, path) else {
        return call.pass(body, parts.headers.get(CONTENT_LENGTH)).await;
    };
    let body = match arrival::read(body, shared.limits.body, shared.limits.client_idle).await {
        Ok(Arrived::Whole(body)) => body,
        Ok(Arrived::Long(body)) => {
            let mut response = call.pass(body, parts.headers.get(CONTENT_LENGTH)).await?;
            tell(&mut response, &Made::as_it_came(Reason::TooLarge));
            return Ok(response);
        }
        Err(NotArrived::Silent) => {
            let hint = "send the body in one go";
            return Err(own::error(StatusCode::REQUEST_TIMEOUT, "the body did not come", hint));
        }
        Err(NotArrived::Broken) => {
            let hint = "check the connection and the length that was told";
            return Err(own::error(StatusCode::BAD_REQUEST, "the body broke off", hint));
        }
    };
    let named = parts.headers.get(SESSION).and_then(|name| name.to_str().ok()).map(str::to_owned);
    call.converse(body, format, named).await
}

/// A call upstream.
struct Call<'a> {
    shared: &'a Arc<Shared>,
    upstream: &'a Upstream,
    method: Method,
    url: Url,
    headers: HeaderMap,
}

impl Call<'_> {
    /// Sends a body as it comes, and gives the answer as it comes.
    async fn pass(&self, body: Body, length: Option<&HeaderValue>) -> Result<Response, Response> {
        let mut headers = self.headers.clone();
        // With a length it goes on as it was; without, in chunks, if there is anything.
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.clone());
        }
        let is_empty = hyper::body::Body::is_end_stream(&body);
        let body = (!is_empty).then(|| reqwest::Body::wrap_stream(body.into_data_stream()));
        let response = self.send(headers, body).await?;
        Ok(to_client(response, |body| Body::new(body)))
    }

    /// Folds a conversation, sends it, and gives the answer as it comes.
    async fn converse(&self, body: Bytes, format: Format, named: Option<String>) -> Result<Response, Response> {
        let made = self.fold(&body, format, named).await;
        let mut headers = self.headers.clone();
        // What is read in passing must not be packed.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let body = match &made.body {
            Some(folded) => {
                headers.remove(CONTENT_ENCODING);
                folded.clone()
            }
            None => body,
        };
        let response = self.send(headers, Some(body.into())).await?;
        let mut response = to_client(response, |body| Body::new(Passing::new(body, Seen)));
        tell(&mut response, &made);
        Ok(response)
    }

    async fn fold(&self, body: &Bytes, format: Format, named: Option<String>) -> Made {
        match encoding::unpack(&self.headers, body, self.shared.limits.body) {
            Ok(body) => self.shared.folder.fold(Wanted { body, format, named }).await,
            Err(Packed::TooLarge) => Made::as_it_came(Reason::TooLarge),
            Err(Packed::Unknown | Packed::Broken) => Made::as_it_came(Reason::Packed),
        }
    }

    async fn send(
        &self,
        headers: HeaderMap,
        body: Option<reqwest::Body>,
    ) -> Result<http::Response<reqwest::Body>, Response> {
        let sender = self.shared.senders.of(self.upstream);
        let mut request = sender.request(self.method.clone(), self.url.clone()).headers(headers);
        if let Some(body) = body {
            request = request.body(body);
        }
        request.send().await.map(http::Response::from).map_err(|error| not_sent(self.upstream, &error))
    }
}

/// What a client is told when upstream does not answer.
fn not_sent(upstream: &Upstream, error: &reqwest::Error) -> Response {
    let address = upstream.address();
    let (status, what) = if error.is_connect() {
        (StatusCode::BAD_GATEWAY, format!("{address} can't be reached"))
    } else if error.is_timeout() {
        (StatusCode::GATEWAY_TIMEOUT, format!("{address} does not answer"))
    } else {
        (StatusCode::BAD_GATEWAY, format!("{address} broke off before it answered"))
    };
    let cause = std::iter::successors(std::error::Error::source(error), |cause| cause.source()).last();
    let what = cause.map_or(what.clone(), |cause| format!("{what}: {cause}"));
    own::error(status, &what, "try again; check --upstream if it stays so")
}

/// An answer as the client gets it.
fn to_client(
    response: http::Response<reqwest::Body>,
    wrap: impl FnOnce(reqwest::Body) -> Body,
) -> Response {
    let (parts, body) = response.into_parts();
    let mut response = Response::new(wrap(body));
    *response.status_mut() = parts.status;
    *response.headers_mut() = headers::client(&parts.headers);
    response
}

/// Tells how a body left.
fn tell(response: &mut Response, made: &Made) {
    let left = match made.left {
        Sent::Whole => "whole".to_owned(),
        Sent::Folded => "folded".to_owned(),
        Sent::AsItCame(reason) => format!("as it came: {reason}"),
    };
    let session = made.session.as_ref().map(|session| session.0.clone());
    for (name, value) in [(LEFT, Some(left)), (SESSION, session)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// Sees answers pass.
struct Seen;

impl Watch for Seen {
    fn saw(&mut self, _bytes: &[u8]) {}

    fn ended(&mut self, end: End) {
        tracing::debug!(?end, "an answer ended");
    }
}
