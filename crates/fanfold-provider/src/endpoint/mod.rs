//! Who is asked, and how long one waits.

#[cfg(feature = "client")]
pub(crate) mod url; // addresses and the URLs below them
pub(crate) mod key; // keys from the environment or a command

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use fanfold_wire::Format;

use crate::endpoint::key::KeySource;

/// How an endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Style {
    /// Chat Completions, which most servers speak.
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
}

impl Style {
    /// The format of its answers.
    pub fn format(self) -> Format {
        match self {
            Style::OpenAi => Format::Chat,
            Style::Anthropic => Format::Anthropic,
        }
    }

    /// The style of an address, as far as it can be told by looking at it.
    pub fn from_url(url: &str) -> Style {
        let address = url.to_ascii_lowercase();
        let is_anthropic =
            address.contains("anthropic") || address.trim_end_matches('/').ends_with("/messages");
        if is_anthropic { Style::Anthropic } else { Style::OpenAi }
    }
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Style::OpenAi => "openai",
            Style::Anthropic => "anthropic",
        })
    }
}

impl FromStr for Style {
    type Err = String;

    fn from_str(name: &str) -> Result<Style, String> {
        match name {
            "openai" => Ok(Style::OpenAi),
            "anthropic" => Ok(Style::Anthropic),
            _ => Err("the styles are openai and anthropic".to_owned()),
        }
    }
}

/// A model at an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// How it is spoken to.
    pub style: Style,
    /// The base address: `https://api.openai.com/v1`, `http://localhost:11434`.
    pub url: String,
    /// The model, by its name there.
    pub model: String,
    /// Where the key comes from.
    pub key: KeySource,
    /// How long one waits.
    pub timeouts: Timeouts,
    /// How often it is asked again after something that may pass.
    pub n_retries: u32,
}

impl Endpoint {
    /// An endpoint without a key, with the usual patience.
    pub fn new(style: Style, url: impl Into<String>, model: impl Into<String>) -> Endpoint {
        Endpoint {
            style,
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

/// The address may have credentials in it, which are left out.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("style", &self.style)
            .field("url", &display_url(&self.url))
            .field("model", &self.model)
            .field("key", &self.key)
            .field("timeouts", &self.timeouts)
            .field("n_retries", &self.n_retries)
            .finish()
    }
}

/// An address without credentials and without its query, which may be one.
pub(crate) fn display_url(address: &str) -> String {
    let bare = address.trim().split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = bare.split_once("://").map_or(("", bare), |(scheme, rest)| (scheme, rest));
    let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let joined = if scheme.is_empty() { host.to_owned() } else { format!("{scheme}://{host}") };
    let whole = if path.is_empty() { joined } else { format!("{joined}/{path}") };
    whole.trim_end_matches('/').chars().take(120).collect()
}

/// How long one waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the request to the first byte of its answer: a local model reads a long prompt first.
    pub first: Duration,
    /// Between two bytes of an answer.
    pub idle: Duration,
    /// For all of it: the key, every try, and the pauses between them.
    pub total: Duration,
    /// For all that a server is asked about its window.
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
