//! How long a prompt a server takes, by what it says itself.
//!
//! Local servers run a model with a window of their own, often far smaller than the one it was trained with: what they
//! run it with is what counts. What a model was trained with is told, too, but only as what it is.

mod parsers; // reads the answer of each kind of server

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::client::Client;
use crate::endpoint::key::Secret;
use crate::error::classify::{Rejection, error_from_response};
use crate::error::retry_after;
use crate::error::{ErrorClass, ProviderError};
use crate::request::http_request::{headers, root_cause};

/// So much of a list of models is read.
const MAX_LIST_BYTES: usize = 16 << 20;

/// A window that a server told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerWindow {
    /// In tokens.
    pub tokens: u64,
    /// What it is the window of.
    pub kind: WindowKind,
    /// The kind of server, as far as its answer tells.
    pub server: &'static str,
}

/// What a window is the window of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// The model as it is run there: longer prompts are refused, or cut without a word.
    Served,
    /// The model as it was trained: the server may run it with less.
    Trained,
}

/// A question to a server beside the list of its models.
struct Probe {
    path: &'static str,
    is_post: bool,
    read: fn(&Value, &str) -> Option<ServerWindow>,
}

/// The questions, in the order in which their answers count.
const PROBES: &[Probe] = &[
    Probe { path: "props", is_post: false, read: parsers::llama_cpp },
    Probe { path: "api/ps", is_post: false, read: parsers::ollama_running },
    Probe { path: "api/show", is_post: true, read: parsers::ollama_model },
    Probe { path: "api/v0/models", is_post: false, read: parsers::lm_studio },
    Probe { path: "api/v1/models", is_post: false, read: parsers::lm_studio_new },
    Probe { path: "info", is_post: false, read: parsers::tgi },
    Probe { path: "get_server_info", is_post: false, read: parsers::sglang },
    Probe { path: "get_model_info", is_post: false, read: parsers::sglang },
    Probe { path: "model/info", is_post: false, read: parsers::litellm },
];

impl Client {
    /// The window that the server runs the model with, if it says so. It waits on this thread, shortly.
    pub fn served_window_blocking(&self) -> Result<Option<u64>, ProviderError> {
        self.block_on(|| self.served_window())
    }

    /// The window that the server runs the model with, if it says so.
    pub async fn served_window(&self) -> Result<Option<u64>, ProviderError> {
        let told = self.probe_window().await?;
        Ok(told.filter(|window| window.kind == WindowKind::Served).map(|window| window.tokens))
    }

    /// What the server says of the model's window, if anything. It waits on this thread, shortly.
    pub fn probe_window_blocking(&self) -> Result<Option<ServerWindow>, ProviderError> {
        self.block_on(|| self.probe_window())
    }

    /// What the server says of the model's window, if anything.
    pub async fn probe_window(&self) -> Result<Option<ServerWindow>, ProviderError> {
        let until = Instant::now() + self.timeouts().window;
        let secret = self.secret(until).await.map_err(|fault| self.annotate(fault, 0, None))?;
        let model = self.endpoint.model.as_str();
        let listed = self.get(Method::GET, self.route.models(), secret.as_ref(), until).await;
        let from_list = listed.as_ref().ok().and_then(|list| parsers::model_list(list, model));
        if let Some(window) = from_list.filter(|window| window.kind == WindowKind::Served) {
            return Ok(Some(window));
        }
        if let Err(fault) = &listed
            && matches!(
                fault.class,
                ErrorClass::Auth | ErrorClass::Quota | ErrorClass::Connection | ErrorClass::Timeout
            )
        {
            return Err(self.annotate(fault.clone(), 1, secret.as_ref()));
        }
        // Those that are asked in their own ways are local; a hosted provider says what it says in its list.
        let questions = if self.route.is_plain() { PROBES } else { &[] };
        let asked = questions.iter().map(|question| async {
            let method = if question.is_post { Method::POST } else { Method::GET };
            let told = self.get(method, self.route.server_path(question.path), secret.as_ref(), until).await;
            (question.read)(&told.ok()?, model)
        });
        let told: Vec<ServerWindow> = join_all(asked).await.into_iter().flatten().chain(from_list).collect();
        let served = told.iter().find(|window| window.kind == WindowKind::Served);
        Ok(served.or(told.first()).copied())
    }

    async fn get(
        &self,
        method: Method,
        url: Url,
        secret: Option<&Secret>,
        until: Instant,
    ) -> Result<Value, ProviderError> {
        let is_post = method == Method::POST;
        let known = headers(self.endpoint.style, self.route.is_azure(), secret);
        let mut request = self.http.request(method, url).headers(known);
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
                        "what it says of its models is too long",
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
            serde_json::from_slice(&body)
                .map_err(|_| ProviderError::new(ErrorClass::Broken, "what it says of its models is no JSON"))
        };
        let most = self.timeouts().window.max(Duration::from_millis(1));
        let late = || {
            ProviderError::new(
                ErrorClass::Timeout,
                format!("it said nothing of its models within {} ms", most.as_millis()),
            )
        };
        timeout_at(until, work).await.map_err(|_| late())?
    }
}

fn send_error(error: &reqwest::Error) -> ProviderError {
    let class = if error.is_timeout() { ErrorClass::Timeout } else { ErrorClass::Connection };
    ProviderError::new(class, root_cause(error))
}
