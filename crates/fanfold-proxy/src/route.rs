//! Which requests are folded, and whose style a path is.

use fanfold_wire::Format;
use http::{HeaderMap, Method};

/// Whose routes they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    OpenAi,
    Anthropic,
}

/// The format of a request that is folded; none passes as it is.
pub(crate) fn folded(method: &Method, path: &str) -> Option<Format> {
    if method != Method::POST {
        return None;
    }
    let path = path.trim_end_matches('/');
    // A bare `/messages` may be a thread's.
    let endings = [
        ("/chat/completions", Format::Chat),
        ("/responses", Format::Responses),
        ("/v1/messages", Format::Anthropic),
    ];
    endings.into_iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, format)| format)
}

/// Whose request it is: by its path, and where both have it, by its headers.
pub(crate) fn style(path: &str, headers: &HeaderMap) -> Style {
    let has = |name: &str| headers.contains_key(name);
    let is_anthropic = path.contains("/v1/messages")
        || path.contains("/v1/complete")
        || has("anthropic-version")
        || (has("x-api-key") && !has("authorization"));
    let is_openai = path.ends_with("/chat/completions") || path.contains("/responses");
    if is_anthropic && !is_openai { Style::Anthropic } else { Style::OpenAi }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conversations_are_folded() {
        let cases = [
            ("/v1/chat/completions", Some(Format::Chat)),
            ("/chat/completions", Some(Format::Chat)),
            ("/openai/deployments/x/chat/completions", Some(Format::Chat)),
            ("/v1/responses", Some(Format::Responses)),
            ("/v1/responses/", Some(Format::Responses)),
            ("/v1/messages", Some(Format::Anthropic)),
            ("/v1/messages/count_tokens", None),
            ("/v1/messages/batches", None),
            ("/v1/threads/t/messages", None),
            ("/v1/responses/r/cancel", None),
            ("/v1/responses/compact", None),
            ("/v1/embeddings", None),
        ];
        for (path, expected) in cases {
            assert_eq!(folded(&Method::POST, path), expected, "{path}");
            assert_eq!(folded(&Method::GET, path), None, "{path}");
        }
    }

    #[test]
    fn a_path_of_both_goes_by_its_headers() {
        let headers = |names: &[&str]| -> HeaderMap {
            names
                .iter()
                .map(|name| (name.parse::<http::HeaderName>().unwrap(), "x".parse().unwrap()))
                .collect()
        };
        let cases = [
            ("/v1/models", &["authorization"][..], Style::OpenAi),
            ("/v1/models", &["x-api-key", "anthropic-version"], Style::Anthropic),
            ("/v1/messages/count_tokens", &[], Style::Anthropic),
            ("/v1/chat/completions", &["x-api-key"], Style::OpenAi),
            ("/v1/files", &["x-api-key"], Style::Anthropic),
        ];
        for (path, names, expected) in cases {
            assert_eq!(style(path, &headers(names)), expected, "{path} {names:?}");
        }
    }
}
