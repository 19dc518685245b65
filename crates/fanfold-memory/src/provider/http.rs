//! A memory server with a few plain HTTP routes, for users with a server of their own.
//!
//! ```text
//! POST /prefetch  {"session", "query"}              ->  {"text"} or {"memories": [text, …]}; nothing found is fine
//! POST /sync      {"session", "user", "assistant"}  ->  any 2xx status
//! POST /offer     {"session", "texts"}              ->  the same; 404 is ignored
//! POST /end       {"session"}                       ->  the same
//! ```

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::provider::config::MemoryKey;
use crate::provider::error::{MemoryError, excerpt};
use crate::provider::limited_http::{BodyError, MAX_ANSWER_BYTES, read_body};
use crate::provider::search_results::SearchResults;

/// Timeout for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A memory server with plain HTTP routes.
pub(crate) struct HttpProvider {
    client: reqwest::Client,
    url: String,
    key: Option<MemoryKey>,
    call: Duration,
}

impl HttpProvider {
    pub(crate) fn new(
        url: &str,
        key: Option<MemoryKey>,
        call: Duration,
    ) -> Result<HttpProvider, MemoryError> {
        Ok(HttpProvider { client: http_client(url)?, url: url.trim_end_matches('/').to_owned(), key, call })
    }

    /// Searches and returns the results as lines.
    pub(crate) async fn search(&self, conversation: &str, query: &str) -> Result<String, MemoryError> {
        let answer = self.post("prefetch", &json!({ "session": conversation, "query": query })).await?;
        let Some(answer) = answer.filter(|body| !body.is_empty()) else { return Ok(String::new()) };
        let answer: Value = serde_json::from_slice(&answer)
            .map_err(|error| MemoryError::InvalidAnswer(excerpt(&error.to_string())))?;
        let found = match answer.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => answer.get("memories").map(Value::to_string).unwrap_or_default(),
        };
        Ok(SearchResults { terms: Vec::new(), texts: vec![found] }.lines(conversation))
    }

    /// Sends the prompt and the answer of a turn.
    pub(crate) async fn sync(
        &self,
        conversation: &str,
        user: &str,
        assistant: &str,
    ) -> Result<(), MemoryError> {
        let body = json!({ "session": conversation, "user": user, "assistant": assistant });
        self.post("sync", &body).await.map(drop)
    }

    /// Offers text that is about to be folded.
    pub(crate) async fn offer(&self, conversation: &str, texts: &[String]) -> Result<(), MemoryError> {
        self.post("offer", &json!({ "session": conversation, "texts": texts })).await.map(drop)
    }

    /// Reports that a session has ended.
    pub(crate) async fn end(&self, conversation: &str) -> Result<(), MemoryError> {
        self.post("end", &json!({ "session": conversation })).await.map(drop)
    }

    /// Posts to a route. Returns `None` if the server lacks an optional route.
    async fn post(&self, route: &str, body: &Value) -> Result<Option<Vec<u8>>, MemoryError> {
        let result = timeout(self.call, self.try_post(route, body)).await;
        result.unwrap_or(Err(MemoryError::Timeout(self.call)))
    }

    async fn try_post(&self, route: &str, body: &Value) -> Result<Option<Vec<u8>>, MemoryError> {
        let mut request = self.client.post(format!("{}/{route}", self.url)).body(body.to_string());
        request = request.header(CONTENT_TYPE, "application/json");
        if let Some(key) = &self.key {
            request = request.bearer_auth(&key.0);
        }
        let response = request.send().await.map_err(|error| {
            let why = excerpt(&root_cause(&error));
            if error.is_connect() { MemoryError::Unreachable(why) } else { MemoryError::Disconnected(why) }
        })?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND {
            return if route == "prefetch" {
                Err(MemoryError::NoTool(format!("/{route}")))
            } else {
                Ok(None)
            };
        }
        let body = read_body(response).await.map_err(|error| match error {
            BodyError::TooLong(_) => MemoryError::TooLong(MAX_ANSWER_BYTES),
            BodyError::Broken(error) => MemoryError::Disconnected(excerpt(&root_cause(&error))),
        })?;
        if !status.is_success() {
            return Err(MemoryError::Refused(excerpt(&format!(
                "{status} {}",
                String::from_utf8_lossy(&body)
            ))));
        }
        Ok(Some(body))
    }
}

/// An HTTP client for a URL. Loopback addresses bypass the proxy of the environment.
pub(crate) fn http_client(url: &str) -> Result<reqwest::Client, MemoryError> {
    // Fails if a crypto provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let unreachable = |why: String| MemoryError::Unreachable(why);
    let parsed = reqwest::Url::parse(url)
        .map_err(|error| unreachable(format!("`{}` is not a URL: {error}", excerpt(url))))?;
    let host = parsed.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let is_loopback =
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let mut builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT);
    builder = builder.redirect(reqwest::redirect::Policy::none());
    if is_loopback {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| unreachable(error.to_string()))
}

fn root_cause(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}
