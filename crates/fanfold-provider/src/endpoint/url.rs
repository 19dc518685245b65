//! Addresses as people write them: with and without `/v1`, with a slash at the end, with the whole path of a request.

use reqwest::Url;

use crate::endpoint::{Style, display_url};

/// Why there is no client of an address.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// The text is no address.
    #[error("`{address}` is no address of a provider: {why}")]
    Invalid {
        /// The text, without what may be secret in it.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// This machine can't send anything there: it has no certificates, say.
    #[error("nothing can be sent to `{address}` from here: {why}")]
    NoClient {
        /// The address.
        address: String,
        /// Why.
        why: String,
    },
}

impl AddressError {
    /// What to do about it.
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

/// Where requests go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderUrl {
    /// The base, with its version.
    base: Url,
    /// The base as it was written, if the version in the other one was added here.
    written: Option<Url>,
    style: Style,
}

/// Ends of a path that belong to a request, not to a base.
const ENDPOINT_PATHS: &[&str] = &["/chat/completions", "/completions", "/responses", "/messages", "/models"];

impl ProviderUrl {
    pub(crate) fn parse(address: &str, style: Style) -> Result<ProviderUrl, AddressError> {
        let wrong = |why: &str| AddressError::Invalid { address: display_url(address), why: why.to_owned() };
        let trimmed = address.trim();
        let mut url = Url::parse(trimmed).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("it begins with neither http:// nor https://"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong("it names no host"));
        }
        url.set_fragment(None);
        let mut path = url.path().trim_end_matches('/').to_owned();
        if let Some(rest) = ENDPOINT_PATHS.iter().find_map(|request| path.strip_suffix(request)) {
            path = rest.trim_end_matches('/').to_owned();
        }
        let has_version = match style {
            // What is written behind a version belongs to it: `/v1beta/openai`, `/v1/account/gateway/compat`.
            Style::OpenAi => path.split('/').any(|segment| is_version(segment) || segment == "deployments"),
            Style::Anthropic => path.rsplit('/').next().is_some_and(is_version),
        };
        let at = |path: &str| {
            let mut url = url.clone();
            url.set_path(path);
            url
        };
        if has_version {
            return Ok(ProviderUrl { base: at(&path), written: None, style });
        }
        Ok(ProviderUrl { base: at(&format!("{path}/v1")), written: Some(at(&path)), style })
    }

    /// Where a prompt goes; below the address as it was written, if the version was wrong.
    pub(crate) fn completions(&self, is_as_written: bool) -> Url {
        let base = self.written.as_ref().filter(|_| is_as_written).unwrap_or(&self.base);
        let ending = match self.style {
            Style::OpenAi => "chat/completions",
            Style::Anthropic => "messages",
        };
        join(base, ending)
    }

    /// Whether there is another address to try.
    pub(crate) fn has_fallback(&self) -> bool {
        self.written.is_some()
    }

    /// The list of models.
    pub(crate) fn models(&self) -> Url {
        join(&self.base, "models")
    }

    /// A path of the server itself, beside its version.
    pub(crate) fn server_path(&self, path: &str) -> Url {
        let mut root = self.base.clone();
        let parent =
            root.path().trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent).to_owned();
        root.set_path(&parent);
        join(&root, path)
    }

    /// The address as it may be shown.
    pub(crate) fn display(&self) -> String {
        display_url(self.written.as_ref().unwrap_or(&self.base).as_str())
    }

    /// Secrets that stand in the address itself.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let password = self.base.password().map(str::to_owned);
        let queries = self.base.query_pairs().map(|(_, value)| value.into_owned());
        password.into_iter().chain(queries).filter(|secret| secret.len() >= 8).collect()
    }

    /// Whether it is on this machine: a proxy of the environment's is for the world outside.
    pub(crate) fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default();
        let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || ip.is_ok_and(|address| address.is_loopback())
    }

    /// Whether it is spoken to without TLS.
    pub(crate) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    /// Whether Azure answers there, which wants its keys in a header of its own.
    pub(crate) fn is_azure(&self) -> bool {
        self.base.host_str().is_some_and(|host| host.ends_with(".azure.com"))
    }
}

fn join(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}/{path}", base.path().trim_end_matches('/')));
    url
}

/// `v1`, `v2`, `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(url: &str, style: Style) -> String {
        ProviderUrl::parse(url, style).unwrap().completions(false).to_string()
    }

    #[test]
    fn every_way_of_writing_an_address_of_openais_style() {
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
            assert_eq!(asking(url, Style::OpenAi), expected, "{url}");
        }
    }

    #[test]
    fn every_way_of_writing_an_address_of_anthropics() {
        let cases = [
            ("https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
            ("https://api.anthropic.com/v1/messages", "https://api.anthropic.com/v1/messages"),
            ("https://h/api/anthropic", "https://h/api/anthropic/v1/messages"),
        ];
        for (url, expected) in cases {
            assert_eq!(asking(url, Style::Anthropic), expected, "{url}");
        }
    }

    #[test]
    fn the_servers_own_paths_stand_beside_its_version() {
        for url in ["http://h:1", "http://h:1/v1", "http://h:1/v1/chat/completions"] {
            let route = ProviderUrl::parse(url, Style::OpenAi).unwrap();
            assert_eq!(route.server_path("api/show").as_str(), "http://h:1/api/show", "{url}");
            assert_eq!(route.models().as_str(), "http://h:1/v1/models", "{url}");
        }
        let below = ProviderUrl::parse("https://h/llm/v1", Style::OpenAi).unwrap();
        assert_eq!(below.server_path("props").as_str(), "https://h/llm/props");
    }

    #[test]
    fn what_is_no_address_is_told_without_its_secrets() {
        for wrong in ["ftp://h", "api.openai.com/v1", "", "http://", "https://me:hunter2hunter2@ /v1"] {
            let error = ProviderUrl::parse(wrong, Style::OpenAi).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && error.contains("no address"), "{error}");
        }
        assert_eq!(display_url("https://me:hunter2@h/v1?key=hunter2"), "https://h/v1");
    }
}
