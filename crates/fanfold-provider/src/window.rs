//! How long a prompt a server takes, by what it says itself.
//!
//! Local servers run a model with a window of their own, often far smaller than the one it was trained with: what they
//! run it with is what counts. What a model was trained with is told, too, but only as what it is.

mod says; // what each server says, read out of its answers

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::again;
use crate::classify::{Rejection, fault_of};
use crate::client::Client;
use crate::exchange::{cause_of, headers};
use crate::fault::{Class, Fault};
use crate::key::Secret;

/// So much of a list of models is read.
const LONGEST: usize = 16 << 20;

/// A window that a server told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// In tokens.
    pub tokens: u64,
    /// What it is the window of.
    pub of: WindowOf,
    /// The kind of server, as far as its answer tells.
    pub server: &'static str,
}

/// What a window is the window of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowOf {
    /// The model as it is run there: longer prompts are refused, or cut without a word.
    Served,
    /// The model as it was trained: the server may run it with less.
    Trained,
}

/// A question to a server beside the list of its models.
struct Question {
    path: &'static str,
    is_post: bool,
    read: fn(&Value, &str) -> Option<Window>,
}

/// The questions, in the order in which their answers count.
const QUESTIONS: &[Question] = &[
    Question { path: "props", is_post: false, read: says::llama_cpp },
    Question { path: "api/ps", is_post: false, read: says::ollama_running },
    Question { path: "api/show", is_post: true, read: says::ollama_model },
    Question { path: "api/v0/models", is_post: false, read: says::lm_studio },
    Question { path: "api/v1/models", is_post: false, read: says::lm_studio_new },
    Question { path: "info", is_post: false, read: says::tgi },
    Question { path: "get_server_info", is_post: false, read: says::sglang },
    Question { path: "get_model_info", is_post: false, read: says::sglang },
    Question { path: "model/info", is_post: false, read: says::litellm },
];

impl Client {
    /// The window that the server runs the model with, if it says so. It waits on this thread, shortly.
    pub fn window(&self) -> Result<Option<u64>, Fault> {
        self.block_on(|| self.served_window())
    }

    /// The window that the server runs the model with, if it says so.
    pub async fn served_window(&self) -> Result<Option<u64>, Fault> {
        let told = self.ask_window().await?;
        Ok(told.filter(|window| window.of == WindowOf::Served).map(|window| window.tokens))
    }

    /// What the server says of the model's window, if anything. It waits on this thread, shortly.
    pub fn ask_window_now(&self) -> Result<Option<Window>, Fault> {
        self.block_on(|| self.ask_window())
    }

    /// What the server says of the model's window, if anything.
    pub async fn ask_window(&self) -> Result<Option<Window>, Fault> {
        let until = Instant::now() + self.timeouts().window;
        let secret = self.secret(until).await.map_err(|fault| self.named(fault, 0, None))?;
        let model = self.endpoint.model.as_str();
        let listed = self.get(Method::GET, self.route.models(), secret.as_ref(), until).await;
        let from_list = listed.as_ref().ok().and_then(|list| says::listed(list, model));
        if let Some(window) = from_list.filter(|window| window.of == WindowOf::Served) {
            return Ok(Some(window));
        }
        if let Err(fault) = &listed
            && matches!(fault.class, Class::Auth | Class::Quota | Class::Connection | Class::Timeout)
        {
            return Err(self.named(fault.clone(), 1, secret.as_ref()));
        }
        // Those that are asked in their own ways are local; a hosted provider says what it says in its list.
        let questions = if self.route.is_plain() { QUESTIONS } else { &[] };
        let asked = questions.iter().map(|question| async {
            let method = if question.is_post { Method::POST } else { Method::GET };
            let told = self.get(method, self.route.beside(question.path), secret.as_ref(), until).await;
            (question.read)(&told.ok()?, model)
        });
        let told: Vec<Window> = join_all(asked).await.into_iter().flatten().chain(from_list).collect();
        let served = told.iter().find(|window| window.of == WindowOf::Served);
        Ok(served.or(told.first()).copied())
    }

    async fn get(
        &self,
        method: Method,
        url: Url,
        secret: Option<&Secret>,
        until: Instant,
    ) -> Result<Value, Fault> {
        let is_post = method == Method::POST;
        let known = headers(self.endpoint.style, self.route.is_azure(), secret);
        let mut request = self.sender.request(method, url).headers(known);
        if is_post {
            let body = json!({ "model": self.endpoint.model }).to_string();
            request = request.header("content-type", "application/json").body(body);
        }
        let work = async {
            let mut response = request.send().await.map_err(|error| not_sent(&error))?;
            let status = response.status();
            let (retry_after, should_retry) =
                (again::wish(response.headers()), again::should_retry(response.headers()));
            let mut body = Vec::new();
            while let Some(bytes) = response.chunk().await.map_err(|error| not_sent(&error))? {
                body.extend_from_slice(&bytes);
                if body.len() > LONGEST {
                    return Err(Fault::new(Class::Broken, "what it says of its models is too long"));
                }
            }
            if !status.is_success() {
                let status = status.as_u16();
                return Err(fault_of(&Rejection { status, body: &body, retry_after, should_retry }));
            }
            serde_json::from_slice(&body)
                .map_err(|_| Fault::new(Class::Broken, "what it says of its models is no JSON"))
        };
        let most = self.timeouts().window.max(Duration::from_millis(1));
        let late = || {
            Fault::new(
                Class::Timeout,
                format!("it said nothing of its models within {} ms", most.as_millis()),
            )
        };
        timeout_at(until, work).await.map_err(|_| late())?
    }
}

fn not_sent(error: &reqwest::Error) -> Fault {
    let class = if error.is_timeout() { Class::Timeout } else { Class::Connection };
    Fault::new(class, cause_of(error))
}
