//! Which requests are folded, and the provider that a request is meant for.

use fanfold_wire::{Format, Headers, Provider};
use http::{HeaderMap, Method};

/// The format of a request that is folded; `None` for requests that pass unchanged.
pub(crate) fn folded(method: &Method, path: &str) -> Option<Format> {
    if method == Method::POST { Format::from_path(path) } else { None }
}

/// The provider of a request: by its path, or else by its headers, or else the usual one.
pub(crate) fn provider(
    path: &str,
    headers: &HeaderMap,
    default_provider: &'static Provider,
) -> &'static Provider {
    Provider::from_request(path, &RequestHeaders(headers)).unwrap_or(default_provider)
}

/// The headers of a client's request.
pub(crate) struct RequestHeaders<'a>(pub(crate) &'a HeaderMap);

impl Headers for RequestHeaders<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.to_str().unwrap_or_default())
    }
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
    fn headers_decide_for_paths_of_several_providers() {
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
            ("/v1/models", &[bearer][..], "openai"),
            ("/v1/models", &[key, version], "anthropic"),
            ("/v1/models", &[anthropics], "anthropic"),
            ("/v1/models", &[("x-api-key", "sk-ant-x"), bearer], "anthropic"),
            ("/v1/messages/count_tokens", &[], "anthropic"),
            ("/v1/chat/completions", &[key], "openai"),
            // Anthropic also serves this path, for clients of OpenAI.
            ("/v1/chat/completions", &[anthropics], "openai"),
            ("/v1/files", &[key], "anthropic"),
            ("/", &[], "openai"),
        ];
        let [openai, anthropic] = ["openai", "anthropic"].map(|name| Provider::find(name).unwrap());
        for (path, all, expected) in cases {
            assert_eq!(provider(path, &headers(all), openai).name, expected, "{path} {all:?}");
        }
        assert_eq!(provider("/", &headers(&[]), anthropic).name, "anthropic", "the usual provider");
        assert_eq!(provider("/v1/responses", &headers(&[]), anthropic).name, "openai");
    }
}
