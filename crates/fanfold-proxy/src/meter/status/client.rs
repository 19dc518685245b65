//! Reads the status of a proxy over HTTP.

use std::time::Duration;

use fanfold_provider::install_tls;

use super::Status;
use crate::send::http_clients::root_cause;

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why the status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The address is invalid.
    #[error("`{0}` is not the address of a proxy")]
    Address(String),
    /// Nothing answers at the address.
    #[error("no proxy answers at {url}: {why}")]
    Unreachable {
        /// The address.
        url: String,
        /// The cause.
        why: String,
    },
    /// The proxy requires a token.
    #[error("the proxy at {0} requires a token")]
    Token(String),
    /// Another server answers.
    #[error("the server at {url} is not a fanfold proxy: {why}")]
    OtherServer {
        /// The address.
        url: String,
        /// Its response.
        why: String,
    },
}

impl StatusError {
    /// The next step.
    pub fn hint(&self) -> &'static str {
        match self {
            StatusError::Address(_) => "write it as http://HOST:PORT",
            StatusError::Unreachable { .. } => {
                "start one with `fanfold serve`, or give its address with --url"
            }
            StatusError::Token(_) => "give it with --token or FANFOLD_TOKEN",
            StatusError::OtherServer { .. } => "give the address that `fanfold serve` printed with --url",
        }
    }
}

/// Reads the status of a proxy.
pub struct StatusClient {
    url: reqwest::Url,
    shown: String,
    token: Option<String>,
    client: reqwest::Client,
}

impl StatusClient {
    /// A client for the proxy at an address.
    pub fn new(address: &str, token: Option<&str>) -> Result<StatusClient, StatusError> {
        let wrong = || StatusError::Address(address.chars().take(200).collect());
        let url: reqwest::Url = address.parse().map_err(|_| wrong())?;
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_web {
            return Err(wrong());
        }
        install_tls();
        let client = reqwest::Client::builder().timeout(TIMEOUT).no_proxy().build().map_err(|_| wrong())?;
        let shown = shown(&url);
        let mut url = url;
        url.set_path("/fanfold/status");
        url.set_query(None);
        Ok(StatusClient { url, shown, token: token.map(str::to_owned), client })
    }

    /// The address without credentials.
    pub fn address(&self) -> &str {
        &self.shown
    }

    /// The status now.
    pub async fn status(&self) -> Result<Status, StatusError> {
        let mut request = self.client.get(self.url.clone());
        if let Some(token) = &self.token {
            request = request.header("x-fanfold-token", token);
        }
        let url = self.shown.clone();
        let unreachable =
            |error: &reqwest::Error| StatusError::Unreachable { url: url.clone(), why: cause(error) };
        let answer = request.send().await.map_err(|error| unreachable(&error))?;
        let status = answer.status();
        if matches!(status.as_u16(), 401 | 403) {
            return Err(StatusError::Token(url));
        }
        let body = answer.bytes().await.map_err(|error| unreachable(&error))?;
        let read = serde_json::from_slice(&body);
        read.map_err(|_| StatusError::OtherServer { url, why: format!("status {}", status.as_u16()) })
    }
}

/// Scheme, host and port.
fn shown(url: &reqwest::Url) -> String {
    let port = url.port().map_or(String::new(), |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// The innermost cause, without the number of the system error.
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} seconds", TIMEOUT.as_secs());
    }
    root_cause(error).split(" (os error").next().unwrap_or_default().to_lowercase()
}
