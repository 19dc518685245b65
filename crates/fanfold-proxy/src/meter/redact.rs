//! What may be written down of a request's outside: names and a few harmless values, never a key.

use std::fmt::Write as _;

use http::{HeaderMap, Uri};

/// Headers whose values may be shown. All others may hold a key, now or in a later version of some client.
const SHOWN: [&str; 9] = [
    "accept",
    "accept-encoding",
    "anthropic-version",
    "content-encoding",
    "content-length",
    "content-type",
    "retry-after",
    "transfer-encoding",
    "user-agent",
];

/// A shown value is cut after so many characters.
const MOST: usize = 120;

/// The names of headers, with the values of those that hold no secrets.
pub fn shown_headers(headers: &HeaderMap) -> String {
    let mut shown = String::new();
    for (name, value) in headers {
        let value = match value.to_str() {
            Ok(value) if SHOWN.contains(&name.as_str()) => value.chars().take(MOST).collect(),
            _ => "…".to_owned(),
        };
        let space = if shown.is_empty() { "" } else { " " };
        let _ = write!(shown, "{space}{name}={value:?}");
    }
    shown
}

/// The path of an address, without its query: some clients put their keys there.
pub fn shown_path(uri: &Uri) -> String {
    let path: String = uri.path().chars().filter(|c| !c.is_control()).take(MOST).collect();
    if uri.query().is_some() { format!("{path}?…") } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_only_if_they_are_known_to_be_harmless() {
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
    fn a_query_is_not_shown() {
        let uri: Uri = "/v1/models?key=sk-secret".parse().unwrap();
        assert_eq!(shown_path(&uri), "/v1/models?…");
    }
}
