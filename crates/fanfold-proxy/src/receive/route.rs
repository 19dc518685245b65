//! Which requests are folded, and whose style a path is.

use fanfold_wire::Format;
use http::{HeaderMap, Method};

/// Whose routes they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// OpenAI's, and those of all who took them over.
    #[default]
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

/// What a key of Anthropic's begins with.
const ANTHROPICS_KEY: &str = "sk-ant-";

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

/// Whose request it is: by its path, and where both have it, by its headers. Where nothing tells, it is the usual one's.
pub(crate) fn style(path: &str, headers: &HeaderMap, usual: Style) -> Style {
    let has = |name: &str| headers.contains_key(name);
    let is_openai = path.ends_with("/chat/completions") || path.contains("/responses");
    let is_anthropic = path.contains("/v1/messages")
        || path.contains("/v1/complete")
        || has("anthropic-version")
        || has_anthropics_key(headers)
        || (has("x-api-key") && !has("authorization"));
    match (is_openai, is_anthropic) {
        (true, _) => Style::OpenAi,
        (false, true) => Style::Anthropic,
        (false, false) => usual,
    }
}

fn has_anthropics_key(headers: &HeaderMap) -> bool {
    let is_key = |value: &str| value.trim_start().starts_with(ANTHROPICS_KEY);
    let key_in = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = key_in("authorization").and_then(|value| value.split_once(' ')).map(|(_, key)| key);
    bearer.is_some_and(is_key) || key_in("x-api-key").is_some_and(is_key)
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
        let headers = |all: &[(&str, &str)]| -> HeaderMap {
            let pair = |(name, value): &(&str, &str)| {
                (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())
            };
            all.iter().map(pair).collect()
        };
        let (key, version) = (("x-api-key", "x"), ("anthropic-version", "x"));
        let (bearer, anthropics) =
            (("authorization", "Bearer x"), ("authorization", "Bearer sk-ant-oat01-x"));
        let cases = [
            ("/v1/models", &[bearer][..], Style::OpenAi),
            ("/v1/models", &[key, version], Style::Anthropic),
            ("/v1/models", &[anthropics], Style::Anthropic),
            ("/v1/models", &[("x-api-key", "sk-ant-x"), bearer], Style::Anthropic),
            ("/v1/messages/count_tokens", &[], Style::Anthropic),
            ("/v1/chat/completions", &[key], Style::OpenAi),
            // Anthropic has that path as well, for those who know only the other one.
            ("/v1/chat/completions", &[anthropics], Style::OpenAi),
            ("/v1/files", &[key], Style::Anthropic),
            ("/", &[], Style::OpenAi),
        ];
        for (path, all, expected) in cases {
            assert_eq!(style(path, &headers(all), Style::OpenAi), expected, "{path} {all:?}");
        }
        // Where nothing tells, it is the one that the client is known for.
        assert_eq!(style("/", &headers(&[]), Style::Anthropic), Style::Anthropic);
        assert_eq!(style("/v1/responses", &headers(&[]), Style::Anthropic), Style::OpenAi);
    }
}
