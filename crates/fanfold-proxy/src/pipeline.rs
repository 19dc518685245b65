//! One request from start to end: who asks, for what, and where it goes.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use fanfold_wire::Format;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderValue, RETRY_AFTER, UPGRADE};
use http::request::Parts;
use tokio_util::task::TaskTracker;

use crate::admission::body_quota::Shelf;
use crate::admission::connections::Visit;
use crate::admission::token::{self, Token};
use crate::config::{Config, Limits};
use crate::local::{api, local_routes};
use crate::meter::{Arrival, Exit, Meter, Passage, shown_headers, shown_path};
use crate::prepare::folding::Folder;
use crate::prepare::memory::Remember;
use crate::prepare::prepared_body::{Made, Reason};
use crate::prepare::window_probe::Inquiries;
use crate::receive::body::{self as body_reader, Arrived, NotArrived};
use crate::receive::{headers, route};
use crate::send::call::{Call, to_client};
use crate::send::conversation::{Came, tell};
use crate::send::provider_quirks::Taken;
use crate::send::upstream::{Senders, Upstreams};
use crate::server::ServeError;
use crate::watched_body::{End, Passing, Watch};

/// The header by which a client names its session, and by which it is told.
pub(crate) const SESSION: &str = "x-fanfold-session";
/// A longer name of a session is none.
const LONGEST_NAME: usize = 128;

/// What all requests share.
pub(crate) struct Shared {
    upstreams: Upstreams,
    pub(crate) senders: Senders,
    pub(crate) folder: Folder,
    pub(crate) taken: Taken,
    pub(crate) meter: Arc<Meter>,
    pub(crate) inquiries: Arc<Inquiries>,
    pub(crate) memory: Option<Remember>,
    pub(crate) mcp: Option<Router>,
    pub(crate) api: Router,
    token: Option<Token>,
    pub(crate) limits: Limits,
    /// Where bodies are held.
    pub(crate) shelf: Shelf,
    /// By what requests that came through here are known again.
    name: String,
    /// What is still done when an answer has gone.
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    pub(crate) fn new(config: &Config) -> Result<Shared, ServeError> {
        let folder = Folder::new(config);
        let desk = Arc::clone(&folder.desk);
        Ok(Shared {
            upstreams: config.upstreams.clone(),
            senders: Senders::new(&config.limits, config.ca.as_deref(), &config.upstreams)?,
            folder,
            taken: Taken::default(),
            meter: Arc::clone(&config.meter),
            inquiries: Arc::default(),
            memory: config.memory.clone(),
            mcp: config.mcp.clone(),
            api: api::router(Arc::new(move || desk.engine())),
            token: config.token.clone(),
            limits: config.limits,
            shelf: Shelf::new(config.limits.held),
            name: format!("fanfold-{:016x}", fastrand::u64(..)),
            tasks: TaskTracker::new(),
        })
    }
}

/// Answers a request: our own routes here, all others upstream.
pub(crate) async fn exchange(shared: Arc<Shared>, mut request: Request) -> Response {
    let is_own = request.uri().path().starts_with(local_routes::PREFIX);
    // That somebody is there is no secret.
    let is_open = request.uri().path() == local_routes::HEALTH;
    if let Some(token) = shared.token.as_ref().filter(|_| !is_open) {
        if !token::has_token(token, request.headers_mut()) {
            let hint = "send it as `x-fanfold-token: TOKEN`";
            return local_routes::error(StatusCode::UNAUTHORIZED, "the token is missing or wrong", hint);
        }
    } else if is_own && token::is_from_a_page(request.headers()) {
        let hint = "ask by the name localhost or 127.0.0.1";
        return local_routes::error(StatusCode::FORBIDDEN, "this is for programs of this machine", hint);
    }
    if is_own { local_routes::answer_to(shared, request).await } else { forward(&shared, request).await }
}

/// Sends a request upstream, folded if it is a conversation.
async fn forward(shared: &Arc<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // What goes through a WebSocket can't be folded; a client that hears so at once goes on over HTTP.
    if parts.headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        let hint = "use HTTP, which streams as well";
        return local_routes::error(StatusCode::UPGRADE_REQUIRED, "WebSockets are not passed on", hint);
    }
    if headers::is_signed(&parts.headers, &shared.name) {
        let hint = "check --upstream, here and wherever it leads";
        return local_routes::error(StatusCode::LOOP_DETECTED, "a request that left here came back", hint);
    }
    let path = parts.uri.path();
    let provider = route::provider(path, &parts.headers, shared.upstreams.usual);
    let upstream = match shared.upstreams.choose(&parts.headers, provider) {
        Ok(upstream) => upstream,
        Err(named) => {
            let hint = "add it to `allowed` in [serve] of the settings";
            let what = format!("`{named}` is not among the upstreams");
            return local_routes::error(StatusCode::FORBIDDEN, &what, hint);
        }
    };
    let format = route::folded(&parts.method, path);
    // A client may mean a provider that is not known here. Its key must not be sent to another one.
    if format.is_none() && !upstream.accepts(&parts.method, path) {
        let what = format!("{} {path} is not in the API of {}", parts.method, upstream.address());
        let hint = "name the provider that serves it with --upstream URL";
        return local_routes::error(StatusCode::NOT_FOUND, &what, hint);
    }
    let Some(url) = parts.uri.path_and_query().and_then(|path| upstream.target(path)) else {
        return local_routes::error(StatusCode::BAD_REQUEST, "the path is no path", "begin it with a slash");
    };
    let mut headers = headers::upstream(&parts.headers);
    if upstream.is_plain() {
        headers::sign(&mut headers, &shared.name);
    }
    let (upstream, method) = (upstream.clone(), parts.method.clone());
    let call = Call { shared: Arc::clone(shared), upstream, method, url, headers };
    let visit = parts.extensions.get::<Arc<Visit>>();
    let Some(format) = format else {
        return pass_through(&call, &parts, body, visit).await;
    };
    let limits = &shared.limits;
    let (limit, idle, patience) = (limits.body, limits.client_idle, limits.deadline);
    let terms = body_reader::Terms { limit, idle, shelf: &shared.shelf, patience };
    let arrived = match body_reader::read(body, terms).await {
        Ok(arrived) => arrived,
        Err(NotArrived::Silent) => {
            let hint = "send the body in one go";
            return local_routes::error(StatusCode::REQUEST_TIMEOUT, "the body did not come", hint);
        }
        Err(NotArrived::Broken) => {
            let hint = "check the connection and the length that was told";
            return local_routes::error(StatusCode::BAD_REQUEST, "the body broke off", hint);
        }
    };
    if let Arrived::Whole(..) = &arrived
        && let Some(visit) = visit
    {
        visit.is_heard();
    }
    if !has_place(shared, visit).await {
        return full(shared);
    }
    match arrived {
        Arrived::Whole(body, space) => {
            let named = named(&parts.headers);
            call.converse(Came { body, format, named, _space: space }).await
        }
        Arrived::Long(body, why) => pass_long(&call, &parts, body, (format, why)).await,
    }
}

/// Sends on what is no conversation.
async fn pass_through(call: &Call, parts: &Parts, body: Body, visit: Option<&Arc<Visit>>) -> Response {
    if let Some(visit) = visit.filter(|_| hyper::body::Body::is_end_stream(&body)) {
        visit.is_heard();
    }
    if !has_place(&call.shared, visit).await {
        return full(&call.shared);
    }
    call.shared.meter.passed_through();
    tracing::debug!(
        target: "fanfold::passed",
        method = %parts.method,
        path = shown_path(&parts.uri),
        headers = shown_headers(&parts.headers),
        "passed through"
    );
    match call.pass(body, parts.headers.get(CONTENT_LENGTH)).await {
        Ok(response) => to_client(response),
        Err(not_sent) => not_sent.response,
    }
}

/// Sends on a conversation that is not held, for a reason, and counts what becomes of it.
async fn pass_long(call: &Call, parts: &Parts, body: Body, (format, why): (Format, Reason)) -> Response {
    let made = Made::as_it_came(why);
    let traceparent = parts.headers.get("traceparent").and_then(|value| value.to_str().ok());
    let mut passage = call.shared.meter.came(&Arrival { format, model: None, traceparent });
    passage.left(made.left.outcome());
    let length = parts.headers.get(CONTENT_LENGTH);
    if let Some(n_bytes) = length.and_then(|length| length.to_str().ok()?.parse().ok()) {
        passage.sending(n_bytes);
    }
    let mut response = match call.pass(body, length).await {
        Ok(response) => {
            passage.first_byte(response.status().as_u16());
            to_client(response).map(|body| Body::new(Passing::new(body, Unseen(Some(passage)))))
        }
        Err(not_sent) => {
            passage.ended(not_sent.exit);
            not_sent.response
        }
    };
    tell(&mut response, &made);
    response
}

/// An answer that passes unread.
struct Unseen(Option<Passage>);

impl Watch for Unseen {
    fn saw(&mut self, _bytes: &[u8]) {}

    fn ended(&mut self, end: End) {
        let exit = match end {
            End::Complete => Exit::Done,
            End::BrokenOff => Exit::BrokenOff,
            End::ClientGone => Exit::ClientGone,
        };
        if let Some(passage) = self.0.take() {
            passage.ended(exit);
        }
    }
}

async fn has_place(shared: &Shared, visit: Option<&Arc<Visit>>) -> bool {
    match visit {
        Some(visit) => visit.has_place(shared.limits.deadline).await,
        None => true,
    }
}

/// What a client is told who found no place.
fn full(shared: &Shared) -> Response {
    let what = format!("all {} places are taken", shared.limits.connections);
    let mut response = local_routes::error(StatusCode::SERVICE_UNAVAILABLE, &what, "try again in a moment");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The session that a client names: a short name that can be seen. Any other is none, and the session is recognised.
fn named(headers: &HeaderMap) -> Option<String> {
    let name = headers.get(SESSION)?.to_str().ok()?.trim();
    (1..=LONGEST_NAME).contains(&name.len()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_a_name_that_can_be_seen() {
        let named = |name: &[u8]| {
            let name = HeaderValue::from_bytes(name).unwrap();
            named(&HeaderMap::from_iter([(SESSION.parse().unwrap(), name)]))
        };
        assert_eq!(named(b" night run ").as_deref(), Some("night run"));
        assert_eq!((named(b""), named(b"  "), named("é".as_bytes())), (None, None, None));
        let longest = "n".repeat(LONGEST_NAME);
        assert_eq!(named(longest.as_bytes()), Some(longest.clone()));
        assert_eq!(named(format!("{longest}n").as_bytes()), None);
    }
}
