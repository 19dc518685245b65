//! Prompts, and the request options learned from errors.

use fanfold_wire::{PromptRequest, Provider};

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

/// The body of a request to a provider.
pub(crate) fn body(
    provider: &Provider,
    model: &str,
    prompt: &ModelPrompt,
    options: RequestOptions,
) -> String {
    let ModelPrompt { system, user, max_tokens } = prompt;
    let max_tokens = u64::from(*max_tokens);
    let is_joined = options.omits_system && !system.is_empty();
    let user = if is_joined { format!("{system}\n\n{user}") } else { user.clone() };
    provider.print_prompt(&PromptRequest {
        model,
        system: Some(system.as_str()).filter(|system| !system.is_empty() && !is_joined),
        user: &user,
        max_tokens: options.max_output.map_or(max_tokens, |limit| limit.min(max_tokens)),
        uses_max_completion_tokens: options.uses_max_completion_tokens,
        is_streamed: !options.is_unstreamed,
        wants_usage: !options.omits_usage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let prompt =
            ModelPrompt { system: "Be brief.".to_owned(), user: "Go on.".to_owned(), max_tokens: 100 };
        assert_eq!(
            body(Provider::usual(), "m", &prompt, options),
            r#"{"model":"m","max_completion_tokens":50,"messages":[{"role":"user","content":"Be brief.\n\nGo on."}],"stream":false}"#
        );
    }
}
