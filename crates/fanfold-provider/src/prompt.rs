//! What is asked, as each style writes it.

use serde_json::{Map, Value, json};

use crate::endpoint::Style;
use crate::fault::Lesson;

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
pub(crate) struct Manner {
    has_completion_tokens: bool,
    most_output: Option<u64>,
    is_without_usage: bool,
    is_whole: bool,
    is_without_system: bool,
    pub(crate) is_as_written: bool,
}

impl Manner {
    /// The manner that a lesson teaches; none where it teaches nothing new.
    pub(crate) fn after(self, lesson: Lesson) -> Option<Manner> {
        let mut next = self;
        match lesson {
            Lesson::CompletionTokens => next.has_completion_tokens = true,
            Lesson::Output(most) => {
                next.most_output = Some(self.most_output.map_or(most, |known| known.min(most)));
            }
            Lesson::NoUsage => next.is_without_usage = true,
            Lesson::Whole => next.is_whole = true,
            Lesson::NoSystem => next.is_without_system = true,
            Lesson::AsWritten => next.is_as_written = true,
        }
        (next != self).then_some(next)
    }
}

/// The body of a request.
pub(crate) fn body(style: Style, model: &str, prompt: &Prompt, manner: Manner) -> String {
    let most =
        manner.most_output.map_or(u64::from(prompt.max_tokens), |most| most.min(prompt.max_tokens.into()));
    let has_system = !prompt.system.is_empty() && !manner.is_without_system;
    let user = match manner.is_without_system && !prompt.system.is_empty() {
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
            let name = if manner.has_completion_tokens { "max_completion_tokens" } else { "max_tokens" };
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
    body.insert("stream".to_owned(), (!manner.is_whole).into());
    if style == Style::OpenAi && !manner.is_whole && !manner.is_without_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    Value::Object(body).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(style: Style, manner: Manner, expected: &str) {
        let prompt = Prompt { system: "Be brief.".to_owned(), user: "Go on.".to_owned(), max_tokens: 100 };
        assert_eq!(body(style, "m", &prompt, manner), expected);
    }

    #[test]
    fn each_style_has_its_own() {
        check(
            Style::OpenAi,
            Manner::default(),
            r#"{"model":"m","max_tokens":100,"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Go on."}],"stream":true,"stream_options":{"include_usage":true}}"#,
        );
        check(
            Style::Anthropic,
            Manner::default(),
            r#"{"model":"m","max_tokens":100,"system":"Be brief.","messages":[{"role":"user","content":"Go on."}],"stream":true}"#,
        );
    }

    #[test]
    fn lessons_change_it_once() {
        let mut manner = Manner::default();
        for lesson in
            [Lesson::CompletionTokens, Lesson::Output(50), Lesson::NoUsage, Lesson::Whole, Lesson::NoSystem]
        {
            manner = manner.after(lesson).unwrap();
            assert_eq!(manner.after(lesson), None);
        }
        check(
            Style::OpenAi,
            manner,
            r#"{"model":"m","max_completion_tokens":50,"messages":[{"role":"user","content":"Be brief.\n\nGo on."}],"stream":false}"#,
        );
    }
}
