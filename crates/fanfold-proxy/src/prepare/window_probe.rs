//! Context windows probed from model servers, for models that are not in the table of models.
//!
//! The first request for such a model starts a probe and does not wait for it. The result applies to sessions that
//! begin later: a session keeps the window it began with, also after a restart of the proxy.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold_core::{Budget, Tokens};
use fanfold_engine::{SessionEngine, Terms};
use fanfold_provider::{Endpoint, ForwardedKey, KeySource, ModelClient, ServerWindow, Timeouts};
use fanfold_store::{SessionId, StoreError};
use fanfold_wire::Provider;
use http::HeaderMap;

use crate::receive::route::RequestHeaders;
use crate::send::call::ProviderCall;

/// Timeout of a probe.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Pause after a probe without a result. The model may not have been loaded yet.
const PAUSE: Duration = Duration::from_secs(60);
/// The maximum number of models and of sessions; names come from clients.
const MAX_ENTRIES: usize = 4096;
/// Smaller numbers are not windows.
const MIN_WINDOW: Tokens = Tokens(1024);

/// An address and a model.
type ModelKey = (String, String);

/// Probes and their results.
#[derive(Debug, Default)]
pub(crate) struct WindowProbes {
    /// Guards the state of each probe; whole values are inserted.
    probes: Mutex<HashMap<ModelKey, Probe>>,
    /// Guards the windows of running sessions, which are read from the store once.
    sessions: Mutex<HashMap<(SessionId, String), Tokens>>,
}

#[derive(Debug, Clone, Copy)]
enum Probe {
    Running,
    Window(Tokens),
    /// When a probe ended without a result.
    Failed(Instant),
}

/// A model with an unknown window, and the result of its probe if there is one.
#[derive(Debug, Clone)]
pub(crate) struct UnknownWindow {
    probed: Option<Tokens>,
    probes: Arc<WindowProbes>,
    model: String,
}

/// Returns `None` for a model with a known window. Otherwise starts a probe in the background if one is due.
pub(crate) fn unknown_window(call: &ProviderCall, model: Option<&str>) -> Option<UnknownWindow> {
    let model = model?;
    let shared = &call.shared;
    if shared.engine.host().knows_window(model) {
        return None;
    }
    let probes = Arc::clone(&shared.window_probes);
    let key = (call.upstream.address().to_owned(), model.to_owned());
    if probes.start(&key) {
        let (running, endpoint) = (Arc::clone(&probes), endpoint(&key, &call.headers));
        let ended = key.clone();
        shared.tasks.spawn(async move { running.end(ended, probe(endpoint).await) });
    }
    Some(UnknownWindow { probed: probes.result(&key), probes, model: model.to_owned() })
}

/// The endpoint of a model, with the API key of the client.
fn endpoint((address, model): &ModelKey, headers: &HeaderMap) -> Endpoint {
    let headers = RequestHeaders(headers);
    let (provider, key) = Provider::from_key(&headers);
    let key = key.map_or(KeySource::None, |key| KeySource::Forwarded(ForwardedKey::new(key)));
    let timeouts = Timeouts { window: TIMEOUT, connect: TIMEOUT, ..Timeouts::default() };
    Endpoint { timeouts, key, ..Endpoint::new(provider, address, model) }
}

async fn probe(endpoint: Endpoint) -> Option<Tokens> {
    let (address, model) = (endpoint.url.clone(), endpoint.model.clone());
    let client = ModelClient::new(endpoint).ok()?;
    match client.probe_window().await.map(|found| found.and_then(ServerWindow::served)) {
        Ok(Some(window)) => {
            tracing::info!(address, model, window, "the model server reported its context window");
            Some(Tokens(window)).filter(|window| *window >= MIN_WINDOW)
        }
        Ok(None) => {
            tracing::debug!(address, model, "the model server reports no context window");
            None
        }
        Err(fault) => {
            tracing::debug!(address, model, class = %fault.class, "probing the context window failed");
            None
        }
    }
}

impl WindowProbes {
    fn probes(&self) -> MutexGuard<'_, HashMap<ModelKey, Probe>> {
        self.probes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a probe is due. It is then marked as running.
    fn start(&self, key: &ModelKey) -> bool {
        let mut probes = self.probes();
        let is_due = match probes.get(key) {
            Some(Probe::Window(_) | Probe::Running) => false,
            Some(Probe::Failed(at)) => at.elapsed() >= PAUSE,
            None => probes.len() < MAX_ENTRIES,
        };
        if is_due {
            probes.insert(key.clone(), Probe::Running);
        }
        is_due
    }

    fn result(&self, key: &ModelKey) -> Option<Tokens> {
        match self.probes().get(key)? {
            Probe::Window(window) => Some(*window),
            Probe::Running | Probe::Failed(_) => None,
        }
    }

    fn end(&self, key: ModelKey, window: Option<Tokens>) {
        let probe = window.map_or_else(|| Probe::Failed(Instant::now()), Probe::Window);
        self.probes().insert(key, probe);
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<(SessionId, String), Tokens>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnknownWindow {
    /// The fold settings of a session: with the probed window if it is new, else with the window it began with.
    pub(crate) fn settle(
        &self,
        engine: &SessionEngine,
        session: &SessionId,
        is_new: bool,
        terms: &Terms,
    ) -> Result<Terms, StoreError> {
        let key = (session.clone(), self.model.clone());
        let known = self.probes.sessions().get(&key).copied();
        let began_with = match known {
            Some(window) => Some(window),
            None if is_new => None,
            None => engine.recorded_window(session, terms)?,
        };
        let window = began_with.or(self.probed).unwrap_or(terms.budget.window());
        let mut sessions = self.probes.sessions();
        if sessions.len() >= MAX_ENTRIES {
            sessions.clear();
        }
        sessions.insert(key, window);
        Ok(Terms { budget: with_window(window, terms.budget), ..terms.clone() })
    }
}

/// A budget with another window. A reserve that was set is kept; a default one is derived from the window.
fn with_window(window: Tokens, budget: Budget) -> Budget {
    let is_default = budget == Budget::of_window(budget.window());
    if is_default { Budget::of_window(window) } else { Budget::with_reserve(window, budget.reserve()) }
}
