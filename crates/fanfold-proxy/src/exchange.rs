//! One request from start to end: who asks, for what, and where it goes.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, UPGRADE};
use tokio_util::task::TaskTracker;

use crate::arrival::{self, Arrived, NotArrived};
use crate::asked::Inquiries;
use crate::call::Call;
use crate::config::{Config, Limits};
use crate::converse::{Came, tell};
use crate::fold::Folder;
use crate::made::{Made, Reason};
use crate::meter::{Arrival, Exit, Meter};
use crate::remember::Remember;
use crate::server::ServeError;
use crate::taken::Taken;
use crate::trust::{self, Token};
use crate::upstream::{Senders, Upstreams};
use crate::{api, headers, own, route};

/// The header by which a client names its session, and by which it is told.
pub(crate) const SESSION: &str = "x-fanfold-session";

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
    /// What is still done when an answer has gone.
    pub(crate) tasks: TaskTracker,
}

impl Shared {
    pub(crate) fn new(config: &Config) -> Result<Shared, ServeError> {
        let folder = Folder::new(config);
        let desk = Arc::clone(&folder.desk);
        Ok(Shared {
            upstreams: config.upstreams.clone(),
            senders: Senders::new(&config.limits, config.ca.as_deref())?,
            folder,
            taken: Taken::default(),
            meter: Arc::clone(&config.meter),
            inquiries: Arc::default(),
            memory: config.memory.clone(),
            mcp: config.mcp.clone(),
            api: api::router(Arc::new(move || desk.engine())),
            token: config.token.clone(),
            limits: config.limits,
            tasks: TaskTracker::new(),
        })
    }
}

/// Answers a request: our own routes here, all others upstream.
pub(crate) async fn exchange(shared: Arc<Shared>, mut request: Request) -> Response {
    let is_own = request.uri().path().starts_with(own::PREFIX);
    // That somebody is there is no secret.
    let is_open = request.uri().path() == own::HEALTH;
    if let Some(token) = shared.token.as_ref().filter(|_| !is_open) {
        if !trust::has_token(token, request.headers_mut()) {
            let hint = "send it as `x-fanfold-token: TOKEN`";
            return own::error(StatusCode::UNAUTHORIZED, "the token is missing or wrong", hint);
        }
    } else if is_own && trust::is_from_a_page(request.headers()) {
        let hint = "ask by the name localhost or 127.0.0.1";
        return own::error(StatusCode::FORBIDDEN, "this is for programs of this machine", hint);
    }
    if is_own { own::answer_to(shared, request).await } else { forward(&shared, request).await }
}

/// Sends a request upstream, folded if it is a conversation.
async fn forward(shared: &Arc<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // What goes through a WebSocket can't be folded; a client that hears so at once goes on over HTTP.
    if parts.headers.get(UPGRADE).is_some_and(|to| to.as_bytes().eq_ignore_ascii_case(b"websocket")) {
        let hint = "use HTTP, which streams as well";
        return own::error(StatusCode::UPGRADE_REQUIRED, "WebSockets are not passed on", hint);
    }
    let path = parts.uri.path();
    let style = route::style(path, &parts.headers, shared.upstreams.usual);
    let upstream = match shared.upstreams.choose(&parts.headers, style) {
        Ok(upstream) => upstream,
        Err(named) => {
            let hint = "add it to `allowed` in [serve] of the settings";
            let what = format!("`{named}` is not among the upstreams");
            return own::error(StatusCode::FORBIDDEN, &what, hint);
        }
    };
    let Some(url) = parts.uri.path_and_query().and_then(|path| upstream.target(path)) else {
        return own::error(StatusCode::BAD_REQUEST, "the path is no path", "begin it with a slash");
    };
    let headers = headers::upstream(&parts.headers);
    let (upstream, method) = (upstream.clone(), parts.method);
    let call = Call { shared: Arc::clone(shared), upstream, method, url, headers };
    let Some(format) = route::folded(&call.method, path) else {
        shared.meter.passed_through();
        return call.pass(body, parts.headers.get(CONTENT_LENGTH)).await;
    };
    let body = match arrival::read(body, shared.limits.body, shared.limits.client_idle).await {
        Ok(Arrived::Whole(body)) => body,
        Ok(Arrived::Long(body)) => {
            let made = Made::as_it_came(Reason::TooLarge);
            let mut passage = shared.meter.came(&Arrival { format, model: None, traceparent: None });
            passage.left(made.left.outcome());
            let mut response = call.pass(body, parts.headers.get(CONTENT_LENGTH)).await;
            passage.ended(Exit::Done);
            tell(&mut response, &made);
            return response;
        }
        Err(NotArrived::Silent) => {
            let hint = "send the body in one go";
            return own::error(StatusCode::REQUEST_TIMEOUT, "the body did not come", hint);
        }
        Err(NotArrived::Broken) => {
            let hint = "check the connection and the length that was told";
            return own::error(StatusCode::BAD_REQUEST, "the body broke off", hint);
        }
    };
    let named = parts.headers.get(SESSION).and_then(|name| name.to_str().ok()).map(str::to_owned);
    call.converse(Came { body, format, named }).await
}
