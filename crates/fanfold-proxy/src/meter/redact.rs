//! The parts of a request that may be logged: header names and a few harmless values, never a key.

use std::fmt::Write as _;

use fanfold_wire::Provider;
use http::{HeaderMap, Uri};

/// Headers whose values may be logged, as may versions of APIs. Any other header may hold a key in some client.
const SHOWN: [&str; 8] = [
    "accept",
    "accept-encoding",
    "content-encoding",
    "content-length",
    "content-type",
    "retry-after",
    "transfer-encoding",
    "user-agent",
];

/// Values are cut to this many characters.
const MAX_CHARS: usize = 120;

/// Header names, with the values of harmless ones.
pub fn shown_headers(headers: &HeaderMap) -> String {
    let mut shown = String::new();
    for (name, value) in headers {
        let value = match value.to_str() {
            Ok(value) if is_shown(name.as_str()) => value.chars().take(MAX_CHARS).collect(),
            _ => "…".to_owned(),
        };
        let space = if shown.is_empty() { "" } else { " " };
        let _ = write!(shown, "{space}{name}={value:?}");
    }
    shown
}

fn is_shown(name: &str) -> bool {
    let is_version = |provider: &Provider| provider.version_header.is_some_and(|(known, _)| known == name);
    SHOWN.contains(&name) || Provider::all().into_iter().any(is_version)
}

/// The path of a URL without its query, where some clients put their keys.
pub fn shown_path(uri: &Uri) -> String {
    let path: String = uri.path().chars().filter(|c| !c.is_control()).take(MAX_CHARS).collect();
    if uri.query().is_some() { format!("{path}?…") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_only_harmless_values() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-type", "application/json"),
            ("authorization", "Bearer sk-secret"),
            ("x-api-key", "sk-secret"),
            ("x-new-header-with-a-key", "sk-secret"),
            ("cookie", "sk-secret"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let shown = shown_headers(&headers);
        assert!(!shown.contains("secret"), "{shown}");
        assert!(
            shown.contains(r#"content-type="application/json""#) && shown.contains("x-api-key"),
            "{shown}"
        );
    }

    #[test]
    fn hides_the_query() {
        let uri: Uri = "/v1/models?key=sk-secret".parse().unwrap();
        assert_eq!(shown_path(&uri), "/v1/models?…");
    }
}
