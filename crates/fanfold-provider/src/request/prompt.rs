//! Prompts, and the request body in each API style.

use serde_json::{Map, Value, json};

use crate::endpoint::Style;
use crate::error::Adaptation;

/// A prompt for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelPrompt {
    /// The system prompt; empty for none.
    pub system: String,
    /// The user message.
    pub user: String,
    /// Maximum number of output tokens, including thoughts.
    pub max_tokens: u32,
}

/// Options of requests to a server, learned from its errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RequestOptions {
    uses_max_completion_tokens: bool,
    max_output: Option<u64>,
    omits_usage: bool,
    is_unstreamed: bool,
    omits_system: bool,
    pub(crate) uses_url_as_written: bool,
}

impl RequestOptions {
    /// The options after an adaptation; `None` if it changes nothing.
    pub(crate) fn adapted(self, adaptation: Adaptation) -> Option<RequestOptions> {
        let mut next = self;
        match adaptation {
            Adaptation::CompletionTokens => next.uses_max_completion_tokens = true,
            Adaptation::MaxOutput(max_tokens) => {
                next.max_output = Some(self.max_output.map_or(max_tokens, |known| known.min(max_tokens)));
            }
            Adaptation::NoUsage => next.omits_usage = true,
            Adaptation::NoStream => next.is_unstreamed = true,
            Adaptation::NoSystem => next.omits_system = true,
            Adaptation::UrlAsWritten => next.uses_url_as_written = true,
        }
        (next != self).then_some(next)
    }
}

/// The body of a request in an API style.
pub(crate) fn body(style: Style, model: &str, prompt: &ModelPrompt, options: RequestOptions) -> String {
    let max_tokens = options
        .max_output
        .map_or(u64::from(prompt.max_tokens), |max_tokens| max_tokens.min(prompt.max_tokens.into()));
    let has_system = !prompt.system.is_empty() && !options.omits_system;
    let user = match options.omits_system && !prompt.system.is_empty() {
        true => format!("{}\n\n{}", prompt.system, prompt.user),
        false => prompt.user.clone(),
    };
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    let mut messages = Vec::new();
    match style {
        Style::OpenAi => {
            if has_system {
                messages.push(json!({ "role": "system", "content": prompt.system }));
            }
            let name =
                if options.uses_max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
            body.insert(name.to_owned(), max_tokens.into());
        }
        Style::Anthropic => {
            body.insert("max_tokens".to_owned(), max_tokens.into());
            if has_system {
                body.insert("system".to_owned(), prompt.system.as_str().into());
            }
        }
    }
    messages.push(json!({ "role": "user", "content": user }));
    body.insert("messages".to_owned(), messages.into());
    body.insert("stream".to_owned(), (!options.is_unstreamed).into());
    if style == Style::OpenAi && !options.is_unstreamed && !options.omits_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    Value::Object(body).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(style: Style, options: RequestOptions, expected: &str) {
        let prompt =
            ModelPrompt { system: "Be brief.".to_owned(), user: "Go on.".to_owned(), max_tokens: 100 };
        assert_eq!(body(style, "m", &prompt, options), expected);
    }

    #[test]
    fn bodies_in_each_style() {
        check(
            Style::OpenAi,
            RequestOptions::default(),
            r#"{"model":"m","max_tokens":100,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Go on."}],"stream":true,"stream_options":{"include_usage":true}}"#,
        );
        check(
            Style::Anthropic,
            RequestOptions::default(),
            r#"{"model":"m","max_tokens":100,"system":"Be brief.","messages":[{"role":"user","content":"Go on."}],"stream":true}"#,
        );
    }

    #[test]
    fn each_adaptation_changes_the_body_once() {
        let mut options = RequestOptions::default();
        for adaptation in [
            Adaptation::CompletionTokens,
            Adaptation::MaxOutput(50),
            Adaptation::NoUsage,
            Adaptation::NoStream,
            Adaptation::NoSystem,
        ] {
            options = options.adapted(adaptation).unwrap();
            assert_eq!(options.adapted(adaptation), None);
        }
        check(
            Style::OpenAi,
            options,
            r#"{"model":"m","max_completion_tokens":50,"messages":[{"role":"user","content":"Be brief.\n\nGo on."}],"stream":false}"#,
        );
    }
}
