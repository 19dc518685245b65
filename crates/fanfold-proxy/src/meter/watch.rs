//! The status of a proxy, asked for over HTTP.

use std::time::Duration;

use super::Status;

/// A proxy that does not answer for so long is not there.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no status.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The address is none.
    #[error("`{0}` is no address of a proxy")]
    Address(String),
    /// Nobody answers.
    #[error("no proxy answers at {url}: {why}")]
    NotThere {
        /// Where.
        url: String,
        /// What the system says.
        why: String,
    },
    /// It wants a token.
    #[error("the proxy at {0} wants a token")]
    Token(String),
    /// Somebody else answers.
    #[error("what answers at {url} is no fanfold: {why}")]
    NotOurs {
        /// Where.
        url: String,
        /// What it said.
        why: String,
    },
}

impl WatchError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            WatchError::Address(_) => "write it as http://HOST:PORT",
            WatchError::NotThere { .. } => "start one with `fanfold serve`, or name where it is with --url",
            WatchError::Token(_) => "give it with --token or FANFOLD_TOKEN",
            WatchError::NotOurs { .. } => "name the address that `fanfold serve` told with --url",
        }
    }
}

/// Asks proxies for their status.
pub struct Watcher {
    url: reqwest::Url,
    shown: String,
    token: Option<String>,
    client: reqwest::Client,
}

impl Watcher {
    /// One that asks the proxy at an address.
    pub fn new(address: &str, token: Option<&str>) -> Result<Watcher, WatchError> {
        let wrong = || WatchError::Address(address.chars().take(200).collect());
        let url: reqwest::Url = address.parse().map_err(|_| wrong())?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_web {
            return Err(wrong());
        }
        // It may have been installed by the proxy itself; either is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build().map_err(|_| wrong())?;
        let shown = shown(&url);
        let mut url = url;
        url.set_path("/fanfold/status");
        url.set_query(None);
        Ok(Watcher { url, shown, token: token.map(str::to_owned), client })
    }

    /// The address as people see it: without a password.
    pub fn address(&self) -> &str {
        &self.shown
    }

    /// The status now.
    pub async fn status(&self) -> Result<Status, WatchError> {
        let mut request = self.client.get(self.url.clone());
        if let Some(token) = &self.token {
            request = request.header("x-fanfold-token", token);
        }
        let url = self.shown.clone();
        let not_there = |error: &reqwest::Error| WatchError::NotThere { url: url.clone(), why: cause(error) };
        let answer = request.send().await.map_err(|error| not_there(&error))?;
        let status = answer.status();
        if matches!(status.as_u16(), 401 | 403) {
            return Err(WatchError::Token(url));
        }
        let body = answer.bytes().await.map_err(|error| not_there(&error))?;
        let read = serde_json::from_slice(&body);
        read.map_err(|_| WatchError::NotOurs { url, why: format!("status {}", status.as_u16()) })
    }
}

/// Scheme, host and port.
fn shown(url: &reqwest::Url) -> String {
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// The innermost cause, in the system's words.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("it is silent for {} seconds", PATIENCE.as_secs());
    }
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    let words = causes.last().map_or_else(|| error.to_string(), ToString::to_string);
    words.split(" (os error").next().unwrap_or_default().to_lowercase()
}
