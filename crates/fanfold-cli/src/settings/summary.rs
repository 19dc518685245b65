//! Who writes summaries: what can be set of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::Size;

/// The model that writes summaries of what is folded. Without a `model` none is written.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SummaryOptions {
    /// The model. Naming one switches summaries on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Where it is. Default: OpenAI's or Anthropic's own address, by the model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// How it is spoken to: openai, anthropic. Default: by the address, or the model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) style: Option<SummaryStyle>,
    /// The variable of the environment that holds the key. Default: OPENAI_API_KEY or ANTHROPIC_API_KEY at their own
    /// addresses, and none elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_env: Option<String>,
    /// A command that prints the key, instead of a variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_command: Option<String>,
    /// How much it reads at once, in tokens. Default: what is known of the model, or what its server says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<Size>,
    /// For how long one answer is waited for, in seconds. Default: 120.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<u64>,
    /// Whether a summary that fails leaves everything as it was. Default: the digest stands alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) abort_on_failure: Option<bool>,
    /// Who is asked when that one fails: the main model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) main: Option<MainOptions>,
}

/// The main model, which is asked for a summary when the summary model fails.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MainOptions {
    /// The model.
    pub(crate) model: String,
    /// Where it is. Default: where the summary model is, with the same key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// How it is spoken to: openai, anthropic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) style: Option<SummaryStyle>,
    /// The variable of the environment that holds the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_env: Option<String>,
    /// A command that prints the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_command: Option<String>,
    /// How much it reads at once, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<Size>,
}

/// How a model is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SummaryStyle {
    /// Chat Completions, which most servers speak.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
}

impl SummaryOptions {
    pub(crate) fn is_empty(&self) -> bool {
        *self == SummaryOptions::default()
    }
}
