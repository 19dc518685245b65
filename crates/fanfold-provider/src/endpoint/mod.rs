//! Endpoints: provider, address, key and timeouts.

#[cfg(feature = "client")]
pub(crate) mod url; // addresses and the URLs below them
pub(crate) mod key; // keys from the environment or a command

use std::fmt;
use std::time::Duration;

use fanfold_wire::Provider;

use crate::endpoint::key::KeySource;

/// A model at an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The provider whose API it offers.
    pub provider: &'static Provider,
    /// The base URL: `https://api.openai.com/v1`, `http://localhost:11434`.
    pub url: String,
    /// The name of the model at this endpoint.
    pub model: String,
    /// The source of the API key.
    pub key: KeySource,
    /// Timeouts of its requests.
    pub timeouts: Timeouts,
    /// Maximum number of retries after transient errors.
    pub n_retries: u32,
}

impl Endpoint {
    /// An endpoint without a key and with default timeouts.
    pub fn new(provider: &'static Provider, url: impl Into<String>, model: impl Into<String>) -> Endpoint {
        Endpoint {
            provider,
            url: url.into(),
            model: model.into(),
            key: KeySource::None,
            timeouts: Timeouts::default(),
            n_retries: 2,
        }
    }

    /// The same endpoint with a key.
    pub fn with_key(self, key: KeySource) -> Endpoint {
        Endpoint { key, ..self }
    }
}

/// Omits credentials in the URL.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("url", &display_url(&self.url))
            .field("model", &self.model)
            .field("key", &self.key)
            .field("timeouts", &self.timeouts)
            .field("n_retries", &self.n_retries)
            .finish()
    }
}

/// A URL without credentials and without its query, which may contain some.
pub(crate) fn display_url(address: &str) -> String {
    let bare = address.trim().split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = bare.split_once("://").map_or(("", bare), |(scheme, rest)| (scheme, rest));
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let joined = if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") };
    let whole = if path.is_empty() { joined } else { format!("{joined}/{path}") };
    whole.trim_end_matches('/').chars().take(120).collect()
}

/// Timeouts for the phases of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is established.
    pub connect: Duration,
    /// From the request to the first byte of the answer. Local models process a long prompt first.
    pub first: Duration,
    /// Between two chunks of an answer.
    pub idle: Duration,
    /// For the whole request, including the key, all attempts and the pauses between them.
    pub total: Duration,
    /// For all probes of the context window.
    pub window: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            connect: Duration::from_secs(10),
            first: Duration::from_secs(180),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            window: Duration::from_secs(5),
        }
    }
}
