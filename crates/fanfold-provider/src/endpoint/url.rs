//! Provider URLs in every form that users write: with or without `/v1`, with a trailing slash, with a full route.

use fanfold_wire::{Format, KeyHeader, Provider};
use reqwest::Url;

use crate::endpoint::display_url;

/// Why no client can be created for a URL.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text is not a provider URL.
    #[error("`{address}` is not a provider URL: {why}")]
    Invalid {
        /// The text without secrets.
        address: String,
        /// The reason.
        why: String,
    },
    /// No HTTP client can be created, for example because the system has no root certificates.
    #[error("cannot create an HTTP client for `{address}`: {why}")]
    NoClient {
        /// The URL.
        address: String,
        /// The reason.
        why: String,
    },
}

impl AddressError {
    /// The next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            AddressError::Invalid { .. } => {
                "write it as `https://api.openai.com/v1` or `http://localhost:11434`"
            }
            AddressError::NoClient { .. } => {
                "install the system's certificates (`ca-certificates`), or set SSL_CERT_FILE"
            }
        }
    }
}

/// The URLs of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderUrl {
    /// The base URL with a version segment.
    base: Url,
    /// The base URL as configured, if `/v1` was added to it here.
    configured: Option<Url>,
    pub(crate) provider: &'static Provider,
}

/// Routes without conversations that are stripped from a configured URL, as those of all formats are.
const OTHER_ROUTES: [&str; 2] = ["/completions", "/models"];

impl ProviderUrl {
    pub(crate) fn parse(address: &str, provider: &'static Provider) -> Result<ProviderUrl, AddressError> {
        let invalid =
            |why: &str| AddressError::Invalid { address: display_url(address), why: why.to_owned() };
        let trimmed = address.trim();
        let mut url = Url::parse(trimmed).map_err(|error| invalid(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(invalid("it must begin with http:// or https://"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("it has no host"));
        }
        url.set_fragment(None);
        let mut path = url.path().trim_end_matches('/').to_owned();
        let mut routes = Format::ALL.into_iter().filter_map(Format::route).chain(OTHER_ROUTES);
        if let Some(rest) = routes.find_map(|route| path.strip_suffix(route)) {
            path = rest.trim_end_matches('/').to_owned();
        }
        let with_path = |path: &str| {
            let mut url = url.clone();
            url.set_path(path);
            url
        };
        if provider.has_version(&path) {
            return Ok(ProviderUrl { base: with_path(&path), configured: None, provider });
        }
        Ok(ProviderUrl {
            base: with_path(&format!("{path}/v1")),
            configured: Some(with_path(&path)),
            provider,
        })
    }

    /// The URL that prompts are posted to, optionally below the base as configured.
    pub(crate) fn completions(&self, as_configured: bool) -> Url {
        let base = self.configured.as_ref().filter(|_| as_configured).unwrap_or(&self.base);
        join(base, self.provider.prompt_route())
    }

    /// Returns whether the base as configured differs and may be tried as well.
    pub(crate) fn has_fallback(&self) -> bool {
        self.configured.is_some()
    }

    /// The URL of the list of models.
    pub(crate) fn models(&self) -> Url {
        join(&self.base, "/models")
    }

    /// The URL of a route next to the version segment.
    pub(crate) fn server_path(&self, path: &str) -> Url {
        let mut root = self.base.clone();
        let parent =
            root.path().trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
        root.set_path(&parent);
        join(&root, path)
    }

    /// The base URL without credentials.
    pub(crate) fn display(&self) -> String {
        display_url(self.configured.as_ref().unwrap_or(&self.base).as_str())
    }

    /// Secrets that the URL itself contains.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let password = self.base.password().map(str::to_owned);
        let queries = self.base.query_pairs().map(|(_, value)| value.into_owned());
        password.into_iter().chain(queries).filter(|secret| secret.len() >= 8).collect()
    }

    /// Returns whether the host is this machine. Proxies of the environment are then bypassed.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default();
        let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || ip.is_ok_and(|address| address.is_loopback())
    }

    /// Returns whether requests are sent without TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    /// The header with the key.
    pub(crate) fn key_header(&self) -> KeyHeader {
        self.provider.key_header(self.base.host_str().unwrap_or_default())
    }
}

fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str, provider: &str) -> Result<ProviderUrl, AddressError> {
        ProviderUrl::parse(url, Provider::find(provider).unwrap())
    }

    fn completions_url(url: &str, provider: &str) -> String {
        parse(url, provider).unwrap().completions(false).to_string()
    }

    #[test]
    fn openai_urls_in_every_form() {
        let cases = [
            ("https://api.openai.com", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (" https://api.openai.com/v1/ ", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/chat/completions", "https://api.openai.com/v1/chat/completions"),
            ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
            ("http://localhost:1234/v1/models", "http://localhost:1234/v1/chat/completions"),
            ("https://openrouter.ai/api", "https://openrouter.ai/api/v1/chat/completions"),
            ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
            ("https://h/api/paas/v4/", "https://h/api/paas/v4/chat/completions"),
            ("https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"),
            (
                "https://n.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
                "https://n.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21",
            ),
            ("http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"),
        ];
        for (url, expected) in cases {
            assert_eq!(completions_url(url, "openai"), expected, "{url}");
        }
    }

    #[test]
    fn anthropic_urls_in_every_form() {
        let cases = [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"),
            ("https://h/api/anthropic", "https://h/api/anthropic/v1/messages"),
        ];
        for (url, expected) in cases {
            assert_eq!(completions_url(url, "anthropic"), expected, "{url}");
        }
    }

    #[test]
    fn server_routes_are_next_to_the_version_segment() {
        for url in ["http://h:1", "http://h:1/v1", "http://h:1/v1/chat/completions"] {
            let route = parse(url, "openai").unwrap();
            assert_eq!(route.server_path("/api/show").as_str(), "http://h:1/api/show", "{url}");
            assert_eq!(route.models().as_str(), "http://h:1/v1/models", "{url}");
        }
        let below = parse("https://h/llm/v1", "openai").unwrap();
        assert_eq!(below.server_path("/props").as_str(), "https://h/llm/props");
    }

    #[test]
    fn url_errors_do_not_contain_secrets() {
        for invalid in ["ftp://h", "api.openai.com/v1", "", "http://", "https://me:hunter2hunter2@ /v1"] {
            let error = parse(invalid, "openai").unwrap_err().to_string();
            assert!(!error.contains("hunter2") && error.contains("not a provider URL"), "{error}");
        }
        assert_eq!(display_url("https://me:hunter2@h/v1?key=hunter2"), "https://h/v1");
    }
}
