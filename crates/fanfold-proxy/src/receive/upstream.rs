//! Upstreams: one for all requests, one per provider, or one that a client names from a list.

use std::net::{IpAddr, SocketAddr};

use fanfold_wire::{Provider, is_version};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use reqwest::Url;

/// The header with the upstream chosen by the client.
pub(crate) const HEADER: &str = "x-fanfold-upstream";

/// The address of a provider.
#[derive(Debug, Clone)]
pub struct Upstream {
    base: Url,
    /// The provider whose default address it is; `None` for an address that a person chose.
    default_of: Option<&'static Provider>,
}

/// An invalid upstream address.
#[derive(Debug, thiserror::Error)]
#[error("`{address}` is not the address of a provider: {why}")]
pub struct UpstreamError {
    address: String,
    why: String,
}

impl Upstream {
    /// Parses an address such as `https://api.openai.com/v1`, with or without a path.
    pub fn parse(address: &str) -> Result<Upstream, UpstreamError> {
        let wrong = |why: &str| UpstreamError { address: address.to_owned(), why: why.to_owned() };
        let base = Url::parse(address).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(wrong("it must begin with http:// or https://"));
        }
        if base.host_str().is_none_or(str::is_empty) {
            return Err(wrong("it has no host"));
        }
        if !base.username().is_empty() || base.password().is_some() {
            // The error does not repeat the password.
            let address = format!("{}://…@{}", base.scheme(), base.host_str().unwrap_or_default());
            return Err(UpstreamError {
                address,
                ..wrong("it must not contain credentials; clients send them with each request")
            });
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("it must end with its path"));
        }
        Ok(Upstream { base, default_of: None })
    }

    /// The default address of a provider. It receives only requests that belong to the provider's API.
    pub fn default_of(provider: &'static Provider) -> Upstream {
        let base = Url::parse(provider.address).expect("the addresses of providers are URLs");
        Upstream { base, default_of: Some(provider) }
    }

    /// Returns whether a request may be sent here. A chosen address receives every request.
    pub(crate) fn accepts(&self, method: &Method, path: &str) -> bool {
        self.default_of.is_none_or(|provider| provider.serves(method.as_str(), path))
    }

    /// The address, without a slash at its end.
    pub fn address(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The URL for the path of a client: below the base, with `/v1` once if both have it. A path with `.` or `..` has no
    /// URL, because it could lead out of the base.
    pub(crate) fn target(&self, path: &PathAndQuery) -> Option<Url> {
        if has_dot_segment(path.path()) {
            return None;
        }
        let base = self.address();
        let path = path.as_str();
        let versions = base.rsplit('/').next().filter(|last| is_version(last));
        let rest = versions.and_then(|version| path.strip_prefix('/')?.strip_prefix(version));
        let path = rest.filter(|rest| rest.starts_with('/') || rest.is_empty()).unwrap_or(path);
        Url::parse(&format!("{base}{path}")).ok()
    }

    /// Returns whether it is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        self.is_localhost() || self.ip().is_some_and(|ip| ip.is_loopback())
    }

    /// Returns whether it is the server that listens on an address of this machine.
    pub(crate) fn is_at(&self, address: SocketAddr) -> bool {
        // An unspecified address includes loopback.
        let is_same = |ip: IpAddr| ip == address.ip() || (ip.is_loopback() && address.ip().is_unspecified());
        let is_here = self.is_localhost() && (address.ip().is_loopback() || address.ip().is_unspecified());
        let is_same_port = self.base.port_or_known_default() == Some(address.port());
        is_same_port && (is_here || self.ip().is_some_and(is_same))
    }

    /// Returns whether it is reached without TLS, which another fanfold proxy may be.
    pub(crate) fn is_plain(&self) -> bool {
        self.base.scheme() == "http"
    }

    fn is_localhost(&self) -> bool {
        self.base.host_str() == Some("localhost")
    }

    fn ip(&self) -> Option<IpAddr> {
        self.base.host_str()?.trim_matches(['[', ']']).parse().ok()
    }
}

/// Returns whether a path has a segment `.` or `..`, in any spelling that the parser of URLs resolves.
fn has_dot_segment(path: &str) -> bool {
    let mut segments = path.split(['/', '\\']);
    segments.any(|segment| matches!(&*segment.to_ascii_lowercase().replace("%2e", "."), "." | ".."))
}

/// The upstreams of a proxy.
#[derive(Debug, Clone)]
pub struct Upstreams {
    by_provider: Vec<(&'static Provider, Upstream)>,
    /// Others that a client may name.
    pub allowed: Vec<Upstream>,
    /// The provider of requests whose path and headers do not name one.
    pub default_provider: &'static Provider,
}

impl Upstreams {
    /// One upstream for all providers.
    pub fn one(upstream: &Upstream) -> Upstreams {
        Upstreams::new(|_| upstream.clone())
    }

    /// An upstream for each provider.
    pub fn new(upstream_of: impl Fn(&'static Provider) -> Upstream) -> Upstreams {
        let by_provider =
            Provider::all().into_iter().map(|provider| (provider, upstream_of(provider))).collect();
        Upstreams { by_provider, allowed: Vec::new(), default_provider: Provider::usual() }
    }

    /// Replaces the upstream of a provider.
    pub fn set(&mut self, provider: &Provider, upstream: Upstream) {
        if let Some((_, known)) = self.by_provider.iter_mut().find(|(owner, _)| **owner == *provider) {
            *known = upstream;
        }
    }

    /// The upstreams of the providers, in the order of the registry.
    pub fn of_providers(&self) -> impl Iterator<Item = &Upstream> {
        self.by_provider.iter().map(|(_, upstream)| upstream)
    }

    /// All upstreams; some may appear twice.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Upstream> {
        self.of_providers().chain(&self.allowed)
    }

    /// The upstream of a request. The error is a name from the client that is not in the list.
    pub(crate) fn choose(&self, headers: &HeaderMap, provider: &Provider) -> Result<&Upstream, String> {
        let Some(named) = headers.get(HEADER) else {
            let found = self.by_provider.iter().find(|(owner, _)| **owner == *provider);
            return Ok(&found.expect("every provider has an upstream").1);
        };
        let named = named.to_str().unwrap_or_default().trim_end_matches('/');
        self.all().find(|known| known.address() == named).ok_or_else(|| named.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(base: &str, path: &str) -> String {
        Upstream::parse(base).unwrap().target(&path.parse().unwrap()).unwrap().to_string()
    }

    #[test]
    fn a_path_is_appended_to_the_base_with_one_version() {
        let cases = [
            (
                "https://api.openai.com/v1",
                "/v1/chat/completions",
                "https://api.openai.com/v1/chat/completions",
            ),
            ("https://api.openai.com/v1/", "/chat/completions", "https://api.openai.com/v1/chat/completions"),
            (
                "https://api.anthropic.com",
                "/v1/messages?beta=true",
                "https://api.anthropic.com/v1/messages?beta=true",
            ),
            ("https://openrouter.ai/api/v1", "/v1/models", "https://openrouter.ai/api/v1/models"),
            ("https://h/openai/v1", "/v1", "https://h/openai/v1"),
            ("http://127.0.0.1:9/v1", "/v10/x", "http://127.0.0.1:9/v1/v10/x"),
            ("http://h/azure/deployments/d", "/v1/responses", "http://h/azure/deployments/d/v1/responses"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(target(base, path), expected, "{base} {path}");
        }
    }

    #[test]
    fn a_path_does_not_leave_the_base() {
        let upstream = Upstream::parse("http://h/tenant/v1").unwrap();
        for path in [
            "/v1/../../other/x",
            "/v1/%2e%2e/%2E%2E/other/x",
            "/.%2e/other",
            "/v1/./models",
            "/v1/%2e/models",
            "/v1\\..\\..\\other",
            "/..",
        ] {
            assert_eq!(upstream.target(&path.parse().unwrap()), None, "{path}");
        }
        for path in ["/v1/files/a..b", "/v1/...", "/v1/.well-known/x?next=/../x", "/v1/models/a%2fb"] {
            let url = upstream.target(&path.parse().unwrap()).unwrap();
            assert!(url.as_str().starts_with("http://h/tenant/v1/"), "{url}");
        }
    }

    #[test]
    fn refuses_addresses_with_credentials_or_other_schemes() {
        for wrong in ["ftp://h", "not an address", "https://user:secret@h/v1", "https://h/v1?key=1"] {
            assert!(Upstream::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn recognises_its_own_address_by_every_name() {
        let is_at = |upstream: &str, address: &str| {
            Upstream::parse(upstream).unwrap().is_at(address.parse().unwrap())
        };
        for ours in ["http://127.0.0.1:7744/v1", "http://localhost:7744"] {
            assert!(is_at(ours, "127.0.0.1:7744") && is_at(ours, "0.0.0.0:7744"), "{ours}");
        }
        assert!(is_at("http://[::1]:7744", "[::1]:7744") && is_at("http://10.0.0.5", "10.0.0.5:80"));
        for other in ["http://127.0.0.1:7745", "http://127.0.0.2:7744", "https://api.openai.com:7744/v1"] {
            assert!(!is_at(other, "127.0.0.1:7744"), "{other}");
        }
    }

    #[test]
    fn clients_can_only_name_listed_upstreams() {
        let upstream = |address: &str| Upstream::parse(address).unwrap();
        let mut upstreams = Upstreams::one(&upstream("https://a/v1"));
        upstreams.allowed.push(upstream("https://b/v1/"));
        let named = |name: &str| {
            let headers = HeaderMap::from_iter([(HEADER.parse().unwrap(), name.parse().unwrap())]);
            upstreams.choose(&headers, upstreams.default_provider).map(|found| found.address().to_owned())
        };
        assert_eq!(named("https://b/v1").as_deref(), Ok("https://b/v1"));
        assert_eq!(named("https://b/v1/").as_deref(), Ok("https://b/v1"));
        assert_eq!(named("https://c/v1"), Err("https://c/v1".to_owned()));
    }
}
