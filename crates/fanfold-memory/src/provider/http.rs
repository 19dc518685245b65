//! A server of memory with a few plain routes, for those who write their own.
//!
//! ```text
//! POST /prefetch  {"session", "query"}              ->  {"text"} or {"memories": [text, …]}; nothing found is fine
//! POST /sync      {"session", "user", "assistant"}  ->  any status of success
//! POST /offer     {"session", "texts"}              ->  the same; 404 says that nobody wants that
//! POST /end       {"session"}                       ->  the same
//! ```

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::provider::config::ProviderKey;
use crate::provider::error::{MemoryError, excerpt};
use crate::provider::limited_http::{LONGEST, ReadError, read};
use crate::provider::search_results::SearchResults;

/// A connection must be made within this.
const CONNECT: Duration = Duration::from_secs(5);

/// A server of memory with plain routes.
pub(crate) struct HttpProvider {
    sender: reqwest::Client,
    url: String,
    key: Option<ProviderKey>,
    call: Duration,
}

impl HttpProvider {
    pub(crate) fn new(
        url: &str,
        key: Option<ProviderKey>,
        call: Duration,
    ) -> Result<HttpProvider, MemoryError> {
        Ok(HttpProvider { sender: http_client(url)?, url: url.trim_end_matches('/').to_owned(), key, call })
    }

    /// Searches, and gives what was found as lines.
    pub(crate) async fn search(&self, talk: &str, question: &str) -> Result<String, MemoryError> {
        let answer = self.post("prefetch", &json!({ "session": talk, "query": question })).await?;
        let Some(answer) = answer.filter(|body| !body.is_empty()) else { return Ok(String::new()) };
        let answer: Value = serde_json::from_slice(&answer)
            .map_err(|error| MemoryError::InvalidAnswer(excerpt(&error.to_string())))?;
        let found = match answer.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => answer.get("memories").map(Value::to_string).unwrap_or_default(),
        };
        Ok(SearchResults { terms: Vec::new(), texts: vec![found] }.lines(talk))
    }

    /// What was said in a turn.
    pub(crate) async fn sync(&self, talk: &str, user: &str, assistant: &str) -> Result<(), MemoryError> {
        let said = json!({ "session": talk, "user": user, "assistant": assistant });
        self.post("sync", &said).await.map(drop)
    }

    /// What is about to be folded.
    pub(crate) async fn offer(&self, talk: &str, texts: &[String]) -> Result<(), MemoryError> {
        self.post("offer", &json!({ "session": talk, "texts": texts })).await.map(drop)
    }

    /// A session has ended.
    pub(crate) async fn end(&self, talk: &str) -> Result<(), MemoryError> {
        self.post("end", &json!({ "session": talk })).await.map(drop)
    }

    /// Asks on a route; none where there is no such route.
    async fn post(&self, route: &str, body: &Value) -> Result<Option<Vec<u8>>, MemoryError> {
        let asked = timeout(self.call, self.try_post(route, body)).await;
        asked.unwrap_or(Err(MemoryError::Timeout(self.call)))
    }

    async fn try_post(&self, route: &str, body: &Value) -> Result<Option<Vec<u8>>, MemoryError> {
        let mut request = self.sender.post(format!("{}/{route}", self.url)).body(body.to_string());
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
        let body = read(response).await.map_err(|error| match error {
            ReadError::TooLong(_) => MemoryError::TooLong(LONGEST),
            ReadError::Broken(error) => MemoryError::Disconnected(excerpt(&root_cause(&error))),
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

/// What sends requests to an address. A proxy of the environment's is for the world outside.
pub(crate) fn http_client(url: &str) -> Result<reqwest::Client, MemoryError> {
    // Whoever was first has chosen; all that matters is that there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let wrong = |why: String| MemoryError::Unreachable(why);
    let parsed = reqwest::Url::parse(url)
        .map_err(|error| wrong(format!("`{}` is no address: {error}", excerpt(url))))?;
    let host = parsed.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let is_near = host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
    let mut builder = reqwest::Client::builder().connect_timeout(CONNECT);
    builder = builder.redirect(reqwest::redirect::Policy::none());
    if is_near {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| wrong(error.to_string()))
}

fn root_cause(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}
