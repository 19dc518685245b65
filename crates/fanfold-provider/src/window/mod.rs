//! Probes a server for its context window.
//!
//! Local servers often run a model with a far smaller window than it was trained with. Only the served window limits
//! prompts; the trained window is reported as such.

mod parsers; // parses the response of each kind of server

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::client::ModelClient;
use crate::endpoint::key::ApiKey;
use crate::error::classify::{Rejection, error_from_response};
use crate::error::retry_after;
use crate::error::{ErrorClass, ProviderError};
use crate::request::http_request::{headers, root_cause};

/// Maximum size of a list of models.
const MAX_LIST_BYTES: usize = 16 << 20;

/// A context window reported by a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerWindow {
    /// Size in tokens.
    pub tokens: u64,
    /// The kind of window.
    pub kind: WindowKind,
    /// The server software, if its response shows it.
    pub server: &'static str,
}

impl ServerWindow {
    /// The size of a window that the model is served with.
    pub fn served(self) -> Option<u64> {
        (self.kind == WindowKind::Served).then_some(self.tokens)
    }
}

/// The kind of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// The window that the model is served with. Longer prompts are refused or silently cut.
    Served,
    /// The window that the model was trained with. It may be served with less.
    Trained,
}

/// A route that reports a window, other than the list of models.
struct ProbeRoute {
    path: &'static str,
    is_post: bool,
    read: fn(&Value, &str) -> Option<ServerWindow>,
}

/// All probes, most reliable first.
const PROBES: &[ProbeRoute] = &[
    ProbeRoute { path: "/props", is_post: false, read: parsers::llama_cpp },
    ProbeRoute { path: "/api/ps", is_post: false, read: parsers::ollama_running },
    ProbeRoute { path: "/api/show", is_post: true, read: parsers::ollama_model },
    ProbeRoute { path: "/api/v0/models", is_post: false, read: parsers::lm_studio },
    ProbeRoute { path: "/api/v1/models", is_post: false, read: parsers::lm_studio_new },
    ProbeRoute { path: "/info", is_post: false, read: parsers::tgi },
    ProbeRoute { path: "/get_server_info", is_post: false, read: parsers::sglang },
    ProbeRoute { path: "/get_model_info", is_post: false, read: parsers::sglang },
    ProbeRoute { path: "/model/info", is_post: false, read: parsers::litellm },
];

impl ModelClient {
    /// The served or trained window that the server reports, if any. Blocks up to the probe timeout.
    pub fn probe_window_blocking(&self) -> Result<Option<ServerWindow>, ProviderError> {
        self.block_on(|| self.probe_window())
    }

    /// The served or trained window that the server reports, if any.
    pub async fn probe_window(&self) -> Result<Option<ServerWindow>, ProviderError> {
        let deadline = Instant::now() + self.timeouts().window;
        let secret = self.secret(deadline).await.map_err(|error| self.annotate(error, 0, None))?;
        let model = self.endpoint.model.as_str();
        let listed = self.get(Method::GET, self.provider_url.models(), secret.as_ref(), deadline).await;
        let from_list = listed.as_ref().ok().and_then(|list| parsers::model_list(list, model));
        if let Some(window) = from_list.filter(|window| window.kind == WindowKind::Served) {
            return Ok(Some(window));
        }
        if let Err(error) = &listed
            && matches!(
                error.class,
                ErrorClass::Auth | ErrorClass::Quota | ErrorClass::Connection | ErrorClass::Timeout
            )
        {
            return Err(self.annotate(error.clone(), 1, secret.as_ref()));
        }
        // Only local servers have these routes; a hosted provider reports its window in the list of models.
        let probes = if self.provider_url.is_plain() { PROBES } else { &[] };
        let responses = probes.iter().map(|probe| async {
            let method = if probe.is_post { Method::POST } else { Method::GET };
            let found =
                self.get(method, self.provider_url.server_path(probe.path), secret.as_ref(), deadline).await;
            (probe.read)(&found.ok()?, model)
        });
        let found: Vec<ServerWindow> =
            join_all(responses).await.into_iter().flatten().chain(from_list).collect();
        let served = found.iter().find(|window| window.served().is_some());
        Ok(served.or(found.first()).copied())
    }

    async fn get(
        &self,
        method: Method,
        url: Url,
        secret: Option<&ApiKey>,
        deadline: Instant,
    ) -> Result<Value, ProviderError> {
        let is_post = method == Method::POST;
        let headers = headers(&self.provider_url, secret);
        let mut request = self.http.request(method, url).headers(headers);
        if is_post {
            let body = json!({ "model": self.endpoint.model }).to_string();
            request = request.header("content-type", "application/json").body(body);
        }
        let work = async {
            let mut response = request.send().await.map_err(|error| send_error(&error))?;
            let status = response.status();
            let (retry_after, should_retry) = (
                retry_after::requested_delay(response.headers()),
                retry_after::should_retry(response.headers()),
            );
            let mut body = Vec::new();
            while let Some(bytes) = response.chunk().await.map_err(|error| send_error(&error))? {
                body.extend_from_slice(&bytes);
                if body.len() > MAX_LIST_BYTES {
                    return Err(ProviderError::new(
                        ErrorClass::Broken,
                        "the model data of the server is too long",
                    ));
                }
            }
            if !status.is_success() {
                let status = status.as_u16();
                return Err(error_from_response(&Rejection {
                    status,
                    body: &body,
                    retry_after,
                    should_retry,
                }));
            }
            serde_json::from_slice(&body).map_err(|_| {
                ProviderError::new(ErrorClass::Broken, "the model data of the server is not JSON")
            })
        };
        let timeout = self.timeouts().window.max(Duration::from_millis(1));
        let timeout_error = || {
            ProviderError::new(
                ErrorClass::Timeout,
                format!("the server returned no model data within {} ms", timeout.as_millis()),
            )
        };
        timeout_at(deadline, work).await.map_err(|_| timeout_error())?
    }
}

fn send_error(error: &reqwest::Error) -> ProviderError {
    let class = if error.is_timeout() { ErrorClass::Timeout } else { ErrorClass::Connection };
    ProviderError::new(class, root_cause(error))
}
