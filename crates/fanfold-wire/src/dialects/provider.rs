//! The providers of models: addresses, credentials, and requests with a single prompt.

use std::fmt;

use crate::dialects::Format;

/// A provider of models. One provider may offer several dialects.
pub struct Provider {
    /// The name in settings and labels.
    pub name: &'static str,
    /// The base address of its service.
    pub address: &'static str,
    /// The environment variable that usually holds its key.
    pub key_variable: &'static str,
    /// The environment variables from which clients read another base address, in order of precedence.
    pub address_variables: &'static [&'static str],
    /// The path at the end of the base addresses of clients; empty if clients add the version to every path.
    pub client_path: &'static str,
    /// The format of requests with a single prompt, and of their replies.
    pub prompt_format: Format,
    /// A header that every request needs, with its value.
    pub version_header: Option<(&'static str, &'static str)>,
    pub(crate) print_prompt: fn(&PromptRequest<'_>) -> String,
    pub(crate) key_header: fn(&str) -> KeyHeader,
    pub(crate) has_version: fn(&str) -> bool,
    pub(crate) owns_address: fn(&str) -> bool,
    pub(crate) owns_model: fn(&str) -> bool,
    pub(crate) owns_program: fn(&str) -> bool,
    pub(crate) owns_path: fn(&str) -> bool,
    pub(crate) owns_headers: fn(&dyn Headers) -> bool,
    pub(crate) serves: fn(&str, &str) -> bool,
}

/// The headers of a request, by their names in lower case.
pub trait Headers {
    /// The value of a header that is text; an empty text for any other value.
    fn get(&self, name: &str) -> Option<&str>;
}

/// The header with the key of a client.
pub struct KeyHeader {
    /// Its name.
    pub name: &'static str,
    /// The part of its value before the key.
    pub prefix: &'static str,
}

/// A request with a single prompt.
pub struct PromptRequest<'a> {
    /// The name of the model.
    pub model: &'a str,
    /// The system text, if any.
    pub system: Option<&'a str>,
    /// The user message.
    pub user: &'a str,
    /// The output limit in tokens, including thoughts.
    pub max_tokens: u64,
    /// True if the limit has its newer name in Chat Completions, as some models require.
    pub uses_max_completion_tokens: bool,
    /// True if the reply is streamed.
    pub is_streamed: bool,
    /// True if a streamed reply ends with its usage.
    pub wants_usage: bool,
}

impl Provider {
    /// All providers in the registry, in its order.
    pub fn all() -> Vec<&'static Provider> {
        let mut all: Vec<&'static Provider> = Vec::new();
        for provider in Format::ALL.iter().filter_map(|format| format.provider()) {
            if !all.contains(&provider) {
                all.push(provider);
            }
        }
        all
    }

    /// The provider whose API most servers offer.
    pub fn usual() -> &'static Provider {
        Provider::all()[0]
    }

    /// The provider of a name.
    pub fn find(name: &str) -> Option<&'static Provider> {
        Provider::first(|provider| provider.name == name)
    }

    /// The provider that a request is meant for, by its path or else by its headers.
    pub fn from_request(path: &str, headers: &dyn Headers) -> Option<&'static Provider> {
        let by_path = Provider::first(|provider| (provider.owns_path)(path));
        by_path.or_else(|| Provider::first(|provider| (provider.owns_headers)(headers)))
    }

    /// The provider whose API the server at an address offers, as far as the address shows.
    pub fn from_address(address: &str) -> &'static Provider {
        let address = address.to_ascii_lowercase();
        Provider::first_or_usual(|provider| (provider.owns_address)(&address))
    }

    /// The provider of a model, as far as its name shows.
    pub fn from_model(model: &str) -> &'static Provider {
        Provider::first_or_usual(|provider| (provider.owns_model)(model))
    }

    /// The provider of a client, as far as the name of its program shows.
    pub fn from_program(program: &str) -> &'static Provider {
        Provider::first_or_usual(|provider| (provider.owns_program)(program))
    }

    /// The provider whose key a request carries, and the key.
    pub fn from_key(headers: &dyn Headers) -> (&'static Provider, Option<&str>) {
        let key = |provider: &'static Provider| {
            let header = provider.key_header("");
            Some((provider, Some(headers.get(header.name)?.strip_prefix(header.prefix)?)))
        };
        Provider::all().into_iter().find_map(key).unwrap_or((Provider::usual(), None))
    }

    fn first(is_meant: impl Fn(&Provider) -> bool) -> Option<&'static Provider> {
        Provider::all().into_iter().find(|provider| is_meant(provider))
    }

    fn first_or_usual(is_meant: impl Fn(&Provider) -> bool) -> &'static Provider {
        Provider::first(is_meant).unwrap_or_else(Provider::usual)
    }

    /// Returns whether a request belongs to the API of the provider.
    pub fn serves(&self, method: &str, path: &str) -> bool {
        (self.serves)(method, path)
    }

    /// The header with the key at a host that offers the provider's API.
    pub fn key_header(&self, host: &str) -> KeyHeader {
        (self.key_header)(host)
    }

    /// Returns whether the path of a base address has a version, to which no other one is added.
    pub fn has_version(&self, path: &str) -> bool {
        (self.has_version)(path)
    }

    /// The end of the path that prompts are posted to.
    pub fn prompt_route(&self) -> &'static str {
        self.prompt_format.route().expect("the format of prompts has an HTTP interface")
    }

    /// The body of a request with a single prompt.
    pub fn print_prompt(&self, prompt: &PromptRequest<'_>) -> String {
        (self.print_prompt)(prompt)
    }
}

impl PartialEq for Provider {
    fn eq(&self, other: &Provider) -> bool {
        self.name == other.name
    }
}

impl Eq for Provider {}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Returns whether a segment of a path is a version: `v1`, `v2`, `v1beta`.
pub fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(provider: &str, has_all: bool) -> String {
        let prompt = PromptRequest {
            model: "m",
            system: has_all.then_some("Be \"brief\"."),
            user: "Go on.",
            max_tokens: 100,
            uses_max_completion_tokens: !has_all,
            is_streamed: has_all,
            wants_usage: true,
        };
        Provider::find(provider).unwrap().print_prompt(&prompt)
    }

    #[test]
    fn prompts_of_each_provider() {
        assert_eq!(
            print("openai", true),
            r#"{"model":"m","max_tokens":100,"messages":[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"Go on."}],"stream":true,"stream_options":{"include_usage":true}}"#
        );
        assert_eq!(
            print("openai", false),
            r#"{"model":"m","max_completion_tokens":100,"messages":[{"role":"user","content":"Go on."}],"stream":false}"#
        );
        assert_eq!(
            print("anthropic", true),
            r#"{"model":"m","max_tokens":100,"system":"Be \"brief\".","messages":[{"role":"user","content":"Go on."}],"stream":true}"#
        );
        assert_eq!(
            print("anthropic", false),
            r#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Go on."}],"stream":false}"#
        );
    }

    #[test]
    fn names_and_addresses_show_the_provider() {
        let name = |provider: &'static Provider| provider.name;
        assert_eq!(name(Provider::from_address("https://h/api/Anthropic")), "anthropic");
        assert_eq!(name(Provider::from_address("http://localhost:8080/v1/messages/")), "anthropic");
        assert_eq!(name(Provider::from_address("http://localhost:11434")), "openai");
        assert_eq!(
            (name(Provider::from_model("claude-x")), name(Provider::from_model("gpt-5"))),
            ("anthropic", "openai")
        );
        assert_eq!(
            ["claude", "codex"].map(|program| name(Provider::from_program(program))),
            ["anthropic", "openai"]
        );
    }
}
