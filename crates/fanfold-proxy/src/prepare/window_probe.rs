//! Windows that servers tell when they are asked, for models that no table has.
//!
//! A server is asked beside the first request for such a model, which waits for nothing. What it says holds for sessions
//! that begin after it: one that has begun keeps the window it was told, also in a proxy that was started anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold_core::{Budget, Tokens};
use fanfold_engine::{Engine, Terms};
use fanfold_provider::{Client, Endpoint, ForwardedKey, KeySource, Style, Timeouts};
use fanfold_store::{SessionId, StoreError};
use http::HeaderMap;
use http::header::AUTHORIZATION;

use crate::send::call::Call;

/// All that a server is asked takes at most so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// One that did not say anything is asked again after so long: a model may not have been loaded yet.
const PAUSE: Duration = Duration::from_secs(60);
/// So many models and sessions are remembered; names come from clients.
const MOST_KEPT: usize = 4096;
/// A smaller one is no window.
const LEAST: Tokens = Tokens(1024);

/// What was asked, and what was said.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    /// Guards what is known of each model at each upstream; whole values go in and out.
    asked: Mutex<HashMap<(String, String), Inquiry>>,
    /// Guards the windows of sessions that go on, so that the store is asked once for each.
    kept: Mutex<HashMap<(SessionId, String), Tokens>>,
}

#[derive(Debug, Clone, Copy)]
enum Inquiry {
    UnderWay,
    Told(Tokens),
    /// Since when nothing is known.
    Silent(Instant),
}

/// A model that no table has, and what its server has said of its window so far.
#[derive(Debug, Clone)]
pub(crate) struct Unknown {
    told: Option<Tokens>,
    inquiries: Arc<Inquiries>,
    model: String,
}

impl Call {
    /// What the server says of the window of a model that no table has. It is asked beside this, if that is still to do.
    pub(crate) fn unknown(&self, model: Option<&str>) -> Option<Unknown> {
        let model = model?;
        if self.shared.folder.desk.host().knows_window(model) {
            return None;
        }
        let inquiries = Arc::clone(&self.shared.inquiries);
        let key = (self.upstream.address().to_owned(), model.to_owned());
        let told = match inquiries.begin(&key) {
            Next::Known(told) => told,
            Next::Ask => {
                let asking = Arc::clone(&inquiries);
                let endpoint = endpoint(&key, &self.headers);
                self.shared.tasks.spawn(async move {
                    let told = ask(endpoint).await;
                    asking.end(key, told);
                });
                None
            }
        };
        Some(Unknown { told, inquiries, model: model.to_owned() })
    }
}

/// The endpoint of a model at an upstream, with the key that the client has for it.
fn endpoint((address, model): &(String, String), headers: &HeaderMap) -> Endpoint {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
    let (style, key) = match (text("x-api-key"), bearer) {
        (Some(key), None) => (Style::Anthropic, Some(key)),
        (_, bearer) => (Style::OpenAi, bearer),
    };
    let key = key.map_or(KeySource::None, |key| KeySource::Forwarded(ForwardedKey::new(key)));
    let timeouts = Timeouts { window: PATIENCE, connect: PATIENCE, ..Timeouts::default() };
    Endpoint { timeouts, key, ..Endpoint::new(style, address, model) }
}

async fn ask(endpoint: Endpoint) -> Option<Tokens> {
    let (place, model) = (endpoint.url.clone(), endpoint.model.clone());
    let client = Client::new(endpoint).ok()?;
    match client.served_window().await {
        Ok(Some(window)) => {
            tracing::info!(place, model, window, "the server told its window");
            Some(Tokens(window)).filter(|window| *window >= LEAST)
        }
        Ok(None) => {
            tracing::debug!(place, model, "the server does not tell its window");
            None
        }
        Err(fault) => {
            tracing::debug!(place, model, class = %fault.class, "the server was not to be asked for its window");
            None
        }
    }
}

/// What to do about a model.
enum Next {
    Known(Option<Tokens>),
    Ask,
}

impl Inquiries {
    fn asked(&self) -> MutexGuard<'_, HashMap<(String, String), Inquiry>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, key: &(String, String)) -> Next {
        let mut asked = self.asked();
        match asked.get(key) {
            Some(Inquiry::Told(window)) => return Next::Known(Some(*window)),
            Some(Inquiry::UnderWay) => return Next::Known(None),
            Some(Inquiry::Silent(since)) if since.elapsed() < PAUSE => return Next::Known(None),
            None if asked.len() >= MOST_KEPT => return Next::Known(None),
            Some(Inquiry::Silent(_)) | None => {}
        }
        asked.insert(key.clone(), Inquiry::UnderWay);
        Next::Ask
    }

    fn end(&self, key: (String, String), told: Option<Tokens>) {
        let inquiry = told.map_or_else(|| Inquiry::Silent(Instant::now()), Inquiry::Told);
        self.asked().insert(key, inquiry);
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<(SessionId, String), Tokens>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unknown {
    /// The terms of a session: what the server told, if the session is new, and what it began with, if it goes on.
    pub(crate) fn settle(
        &self,
        engine: &Engine,
        session: &SessionId,
        is_new: bool,
        terms: &Terms,
    ) -> Result<Terms, StoreError> {
        let key = (session.clone(), self.model.clone());
        let known = self.inquiries.kept().get(&key).copied();
        let began = match known {
            Some(window) => Some(window),
            None if is_new => None,
            None => engine.told_window(session, terms)?,
        };
        let window = began.or(self.told).unwrap_or(terms.budget.window());
        let mut kept = self.inquiries.kept();
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(key, window);
        Ok(Terms { budget: of_window(window, terms.budget), ..terms.clone() })
    }
}

/// A budget of another window, with what is kept for the answer as it was meant.
fn of_window(window: Tokens, budget: Budget) -> Budget {
    let is_usual = budget == Budget::of_window(budget.window());
    if is_usual { Budget::of_window(window) } else { Budget::with_reserve(window, budget.reserve()) }
}
