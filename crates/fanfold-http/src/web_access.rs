//! Requests of web pages. A browser sends them from any page that a user opens, so a server without a token accepts
//! only those of pages on this machine, and of hosts and pages in the settings.
//!
//! ```text
//! host name    a page of evil.example whose name resolves to this machine (DNS rebinding)
//! origin       a page of evil.example that sends to 127.0.0.1
//! fetch site   the same by an image or a link, which have no origin
//! ```
//!
//! Programs that are not browsers send neither an origin nor a fetch site.

use std::net::IpAddr;

use http::header::{HOST, HeaderMap, ORIGIN};
use http::{HeaderName, Uri};

/// How the page of a request relates to the server, set by browsers.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Longer names are cut in messages.
const MAX_SHOWN: usize = 80;

/// The host names and web pages that may use a server, besides those of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebAccess {
    /// Names of the server: `box.example`.
    pub hosts: Vec<String>,
    /// Origins of web pages and browser-based programs: `https://chat.example`, `vscode-file://vscode-app`.
    pub origins: Vec<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessRefusal {
    /// The request names a host that is not this machine.
    #[error("requests for the host `{0}` are refused")]
    Host(String),
    /// A web page of another host sent the request.
    #[error("requests of web pages at `{0}` are refused")]
    Origin(String),
    /// A web page of another host sent the request, and its address is not known.
    #[error("requests of other web pages are refused")]
    OtherSite,
}

impl AccessRefusal {
    /// The next step for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            AccessRefusal::Host(_) => "use localhost or 127.0.0.1, or add the name to `hosts` in [serve]",
            AccessRefusal::Origin(_) => "if you trust this page, add it to `origins` in [serve]",
            AccessRefusal::OtherSite => "send the request from a program, or open the address itself",
        }
    }
}

impl WebAccess {
    /// Checks the host name and the web page of a request.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        self.check_host(uri, headers)?;
        self.check_page(headers)
    }

    /// Checks the host name: that of the address of the request, and all in its headers.
    fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        let in_headers = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
        let mut names = uri.authority().map(|authority| authority.as_str()).into_iter().chain(in_headers);
        match names.find(|authority| !self.is_own_host(authority)) {
            Some(foreign) => Err(AccessRefusal::Host(shown(foreign))),
            None => Ok(()),
        }
    }

    /// Checks the web page that sent a request, if one did.
    pub fn check_page(&self, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        let origins: Vec<_> = headers.get_all(ORIGIN).iter().collect();
        for origin in &origins {
            let origin = origin.to_str().unwrap_or_default();
            if !self.is_trusted_origin(origin) {
                return Err(AccessRefusal::Origin(shown(origin)));
            }
        }
        let site = headers.get(FETCH_SITE).map(|site| site.as_bytes());
        let is_of_page = site.is_some_and(|site| !matches!(site, b"same-origin" | b"none"));
        if origins.is_empty() && is_of_page { Err(AccessRefusal::OtherSite) } else { Ok(()) }
    }

    /// Checks that a page of the server itself, or one in the settings, sent a request that changes something. A page
    /// of another program on this machine may show foreign content.
    pub fn check_change(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        let own = uri.authority().map(|authority| authority.as_str().to_owned());
        let own = own.or_else(|| Some(headers.get(HOST)?.to_str().ok()?.to_owned())).unwrap_or_default();
        let is_own = |origin: &str| {
            origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(&own))
        };
        let origins = headers.get_all(ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default());
        match origins.into_iter().find(|origin| !is_own(origin) && !self.is_listed(origin)) {
            Some(foreign) => Err(AccessRefusal::Origin(shown(foreign))),
            None => Ok(()),
        }
    }

    fn is_listed(&self, origin: &str) -> bool {
        self.origins.iter().any(|known| known.trim_end_matches('/').eq_ignore_ascii_case(origin))
    }

    fn is_trusted_origin(&self, origin: &str) -> bool {
        self.is_listed(origin)
            || origin.split_once("://").is_some_and(|(_, authority)| self.is_own_host(authority))
    }

    /// Returns whether an authority, such as `localhost:80`, is this machine or a name in the settings.
    fn is_own_host(&self, authority: &str) -> bool {
        let name = match authority.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => authority.split(':').next().unwrap_or_default(),
        };
        let is_listed = self
            .hosts
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(authority));
        let is_loopback = || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        is_listed || name.eq_ignore_ascii_case("localhost") || is_loopback()
    }
}

fn shown(name: &str) -> String {
    name.chars().take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(access: &WebAccess, uri: &str, all: &[(&str, &str)]) -> Option<AccessRefusal> {
        let header =
            |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        access.check(&uri.parse().unwrap(), &all.iter().map(header).collect()).err()
    }

    #[test]
    fn only_names_of_this_machine_are_accepted() {
        let check = |uri: &str, all: &[(&str, &str)]| check(&WebAccess::default(), uri, all);
        for near in ["localhost:1", "LOCALHOST", "127.0.0.1:8377", "[::1]:8377", "127.3.2.1"] {
            assert_eq!(check("/", &[("host", near)]), None, "{near}");
            assert_eq!(check(&format!("http://{near}/"), &[]), None, "{near}");
        }
        for far in ["evil.example:8377", "localhost.evil.example", "10.0.0.1", "", "127.0.0.1.evil.example"] {
            assert_eq!(check("/", &[("host", far)]), Some(AccessRefusal::Host(far.to_owned())), "{far}");
        }
        let http2 = check("http://evil.example/", &[("host", "localhost")]);
        assert_eq!(
            http2,
            Some(AccessRefusal::Host("evil.example".to_owned())),
            "HTTP/2 has it in the address"
        );
        assert!(check("/", &[("host", "localhost"), ("host", "evil.example")]).is_some());
    }

    #[test]
    fn only_pages_of_this_machine_are_accepted() {
        let check = |all: &[(&str, &str)]| check(&WebAccess::default(), "/", all);
        assert_eq!(check(&[]), None, "programs send no origin");
        for near in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:6274"] {
            assert_eq!(check(&[("origin", near), ("sec-fetch-site", "cross-site")]), None, "{near}");
        }
        for far in ["https://evil.example", "null", "http://localhost.evil.example", "localhost", ""] {
            assert_eq!(check(&[("origin", far)]), Some(AccessRefusal::Origin(far.to_owned())), "{far}");
        }
        for (site, refusal) in [
            ("same-origin", None),
            ("none", None),
            ("same-site", Some(AccessRefusal::OtherSite)),
            ("cross-site", Some(AccessRefusal::OtherSite)),
        ] {
            assert_eq!(check(&[("sec-fetch-site", site)]), refusal, "{site}");
        }
    }

    #[test]
    fn only_its_own_pages_change_sessions() {
        let access = WebAccess { origins: vec!["http://localhost:3000".to_owned()], ..WebAccess::default() };
        let check = |origin: &str| {
            let headers = [(HOST, "127.0.0.1:7744"), (ORIGIN, origin)];
            let headers = headers.map(|(name, value)| (name, value.parse().unwrap())).into_iter().collect();
            access.check_change(&"/".parse().unwrap(), &headers)
        };
        assert_eq!(check("http://127.0.0.1:7744"), Ok(()));
        assert_eq!(check("http://localhost:3000"), Ok(()), "it is in the settings");
        for foreign in ["http://127.0.0.1:1", "http://localhost:7744", "null"] {
            assert_eq!(check(foreign), Err(AccessRefusal::Origin(foreign.to_owned())));
        }
    }

    #[test]
    fn hosts_and_origins_in_the_settings_are_accepted() {
        let access = WebAccess {
            hosts: vec!["Box.example".to_owned()],
            origins: vec!["vscode-file://vscode-app".to_owned(), "https://chat.example/".to_owned()],
        };
        let check = |all: &[(&str, &str)]| check(&access, "/", all);
        assert_eq!(check(&[("host", "box.example:7744"), ("origin", "https://box.example")]), None);
        assert_eq!(check(&[("origin", "vscode-file://vscode-app")]), None);
        assert_eq!(check(&[("origin", "https://chat.example")]), None);
        assert!(check(&[("origin", "http://chat.example")]).is_some(), "the scheme counts");
        assert!(check(&[("host", "chat.example")]).is_some(), "a page is not a name of the server");
    }
}
