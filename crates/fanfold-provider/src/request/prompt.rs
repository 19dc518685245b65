//! What is asked, as each style writes it.

use serde_json::{Map, Value, json};

use crate::endpoint::Style;
use crate::error::Adaptation;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// What it is; none if it is empty.
    pub system: String,
    /// What it is to do.
    pub user: String,
    /// How long its answer may be, thoughts included.
    pub max_tokens: u32,
}

/// How a server wants to be asked, as far as it has said so.
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
    /// The manner that a lesson teaches; none where it teaches nothing new.
    pub(crate) fn adapted(self, lesson: Adaptation) -> Option<RequestOptions> {
        let mut next = self;
        match lesson {
            Adaptation::CompletionTokens => next.uses_max_completion_tokens = true,
            Adaptation::MaxOutput(most) => {
                next.max_output = Some(self.max_output.map_or(most, |known| known.min(most)));
            }
            Adaptation::NoUsage => next.omits_usage = true,
            Adaptation::NoStream => next.is_unstreamed = true,
            Adaptation::NoSystem => next.omits_system = true,
            Adaptation::UrlAsWritten => next.uses_url_as_written = true,
        }
        (next != self).then_some(next)
    }
}

/// The body of a request.
pub(crate) fn body(style: Style, model: &str, prompt: &Prompt, manner: RequestOptions) -> String {
    let most =
        manner.max_output.map_or(u64::from(prompt.max_tokens), |most| most.min(prompt.max_tokens.into()));
    let has_system = !prompt.system.is_empty() && !manner.omits_system;
    let user = match manner.omits_system && !prompt.system.is_empty() {
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
            let name = if manner.uses_max_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
            body.insert(name.to_owned(), most.into());
        }
        Style::Anthropic => {
            body.insert("max_tokens".to_owned(), most.into());
            if has_system {
                body.insert("system".to_owned(), prompt.system.as_str().into());
            }
        }
    }
    messages.push(json!({ "role": "user", "content": user }));
    body.insert("messages".to_owned(), messages.into());
    body.insert("stream".to_owned(), (!manner.is_unstreamed).into());
    if style == Style::OpenAi && !manner.is_unstreamed && !manner.omits_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    Value::Object(body).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(style: Style, manner: RequestOptions, expected: &str) {
        let prompt = Prompt { system: "Be brief.".to_owned(), user: "Go on.".to_owned(), max_tokens: 100 };
        assert_eq!(body(style, "m", &prompt, manner), expected);
    }

    #[test]
    fn each_style_has_its_own() {
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
    fn lessons_change_it_once() {
        let mut manner = RequestOptions::default();
        for lesson in [
            Adaptation::CompletionTokens,
            Adaptation::MaxOutput(50),
            Adaptation::NoUsage,
            Adaptation::NoStream,
            Adaptation::NoSystem,
        ] {
            manner = manner.adapted(lesson).unwrap();
            assert_eq!(manner.adapted(lesson), None);
        }
        check(
            Style::OpenAi,
            manner,
            r#"{"model":"m","max_completion_tokens":50,"messages":[{"role":"user","content":"Be brief.\n\nGo on."}],"stream":false}"#,
        );
    }
}
