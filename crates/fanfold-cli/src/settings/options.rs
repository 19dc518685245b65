//! Every setting, declared once.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use fanfold_core::{Cadence, Policy, Quality, Strategy};
use fanfold_wire::Format;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::declaration::Scope::{self, Folding, User};
use super::declaration::{Setting, SettingDefault, SettingField, settings};
use super::numbers::{Share, Size};
use super::tables::{
    MemoryOptions, ModelOptions, PriceOptions, ServeOptions, SummaryOptions, ToolOptions, is_default,
};
use crate::store;

settings! {
    /// Settings of fanfold. Flags take precedence over the environment (`FANFOLD_WINDOW`, ...), the environment
    /// over the project's `.fanfold.toml`, and that over the user's file. A project's file sets only how to fold.
    pub(crate) struct Options;

    flags ConversationFlags {
        /// Context window of the model, in tokens: 32000, 32k, 1m [default: the model's own]
        window: Size [short, long, value_name = "TOKENS"]
            = r#""128k""#, Folding, SettingDefault::Rule("the model's own");
        /// Part of the window reserved for the reply, in tokens [default: a quarter, at most 8192]
        reserve: Size [long, value_name = "TOKENS"]
            = "8192", Folding, SettingDefault::Rule("a quarter of the window, at most 8192");
        /// Model, which determines window and token counter [default: the one named in the request]
        model: String [short, long, value_name = "NAME"]
            = r#""gpt-5""#, Folding, SettingDefault::Rule("what the request names");
        /// Fallback models, comma-separated; the smallest window of all models applies
        fallback: Chain [long, value_name = "NAMES"]
            = r#"["gpt-4.1"]"#, Folding, SettingDefault::None;
        /// Folding policy: fanfold, hermes, rules, hamr, mask, window [default: fanfold]
        policy: String [short, long, value_name = "NAME", value_parser = Policy::NAMES, hide_possible_values = true]
            = r#""fanfold""#, Folding, SettingDefault::Policy(|policy| policy.name.to_owned());
        /// Engine that folds the conversation [default: fanfold]
        engine: String [long, value_name = "NAME"]
            = r#""fanfold""#, Folding, SettingDefault::Value("fanfold");
        /// YAML file with a `compaction:` block; selects the policy `rules`
        rules: PathBuf [long, value_name = "FILE"]
            = r#""compaction.yaml""#, Folding, SettingDefault::None;
        /// Fill level of the room that triggers folding: aggressive (60 %), moderate (80 %), light (95 %), off
        strategy: String [long, value_name = "NAME", value_parser = Strategy::NAMES, hide_possible_values = true]
            = r#""light""#, Folding, SettingDefault::Policy(|policy| policy.strategy.to_string());
        /// When to fold: cost (when it saves money), window (only when the conversation no longer fits)
        cadence: String [long, value_name = "NAME", value_parser = Cadence::NAMES, hide_possible_values = true]
            = r#""cost""#, Folding, SettingDefault::Rule("cost where the model's price is known, else window");
        /// Weight of content that leaves the view: economy (none), balanced (its price), faithful (fold only when full)
        quality: String [long, value_name = "NAME", value_parser = Quality::NAMES, hide_possible_values = true]
            = r#""balanced""#, Folding, SettingDefault::Value("balanced");
        /// Format of the conversation: chat, responses, anthropic, sharegpt, hermes [default: recognised]
        format: String [long, value_name = "NAME", value_parser = Format::ALL.map(Format::name), hide_possible_values = true]
            = r#""chat""#, Folding, SettingDefault::Rule("recognised");
        /// Topic to keep more of
        focus: String [long, value_name = "TOPIC"]
            = r#""""#, Folding, SettingDefault::None;
        /// When user messages may be shortened: last_resort (before refusing), never
        user_text: UserText [long, value_name = "WHEN", hide_possible_values = true]
            = r#""last_resort""#, Folding, SettingDefault::Value("last_resort");
        /// Path of the tokenizer.json to count tokens with [default: the model's own]
        tokenizer: PathBuf [long, value_name = "FILE"]
            = r#""tokenizer.json""#, Folding, SettingDefault::Rule("the model's own");
    }

    flags ColorFlag {
        /// When to use colours: auto, always, never
        color: Color [long, global = true, value_name = "WHEN", hide_possible_values = true]
            = r#""auto""#, User("what reaches your terminal"), SettingDefault::Value("auto");
    }

    flags ViewFlags {
        /// Target of a fold when the window is full or the fold was requested, as a share of the room
        low_mark: Share [skip]
            = "0.616", Folding, SettingDefault::Policy(|policy| Share(policy.low_mark).to_string());
        /// Part of the end that such a fold leaves unchanged, as a share of the room; a fold that saves money leaves
        /// the newest 1,500 tokens and three steps
        tail: Share [skip]
            = "0.022", Folding, SettingDefault::Policy(|policy| Share(policy.tail.share).to_string());
        /// Append a summary of the agent's work to each view: files, verdicts, errors
        working_context: bool [long, num_args = 0, default_missing_value = "true"]
            = "false", Folding, SettingDefault::Policy(|policy| policy.working_context.to_string());
    }

    /// Where sessions are stored.
    flags StoreFlags {
        /// Where sessions are stored: a file, a folder, postgres://USER@HOST/DATABASE [default: the profile's file]
        store: String [long, global = true, value_name = "ADDRESS", conflicts_with = "profile"]
            = r#""sessions.db""#, User("where conversations are stored"),
                SettingDefault::Options(|options| store::address(options).ok());
        /// Profile with a store of its own; overrides a store from a lower-priority source [default: default]
        profile: String [long, global = true, value_name = "NAME"]
            = r#""default""#, User("where conversations are stored"), SettingDefault::Options(|options| {
                options.store.is_none().then(|| store::DEFAULT_PROFILE.to_owned())
            });
    }

    tables {
        /// The proxy. Only in your own file, because it decides where credentials are sent.
        #[serde(default, skip_serializing_if = "is_default")]
        serve: ServeOptions, User("where credentials go");
        /// Memory across sessions. Only in your own file, because it decides where your messages are sent.
        #[serde(default, skip_serializing_if = "is_default")]
        memory: MemoryOptions, User("where your messages go");
        /// Summaries by a model. Only in your own file, because it decides where conversations and credentials are sent.
        #[serde(default, skip_serializing_if = "is_default")]
        summary: SummaryOptions, User("where credentials go");
    }

    lists {
        /// Rules for single tools.
        #[serde(default, alias = "tool", skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolOptions>, Folding;
        /// Windows of models that fanfold does not know, or knows wrongly.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        models: Vec<ModelOptions>, Folding;
        /// Prices of models that fanfold does not know, or knows wrongly.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        prices: Vec<PriceOptions>, Folding;
    }
}

/// The flags of commands that fold a conversation.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub(crate) struct FoldFlags {
    #[command(flatten)]
    conversation: ConversationFlags,
    #[command(flatten)]
    view: ViewFlags,
}

impl FoldFlags {
    /// True if at least one of the flags is given.
    pub(crate) fn is_given(&self) -> bool {
        *self != FoldFlags::default()
    }

    /// Copies the flags into the options.
    pub(crate) fn set(&self, options: &mut Options) {
        self.conversation.set(options);
        self.view.set(options);
    }
}

/// Model names in fallback order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Chain(pub(crate) Vec<String>);

impl FromStr for Chain {
    type Err = Infallible;

    /// Parses names separated by commas.
    fn from_str(text: &str) -> Result<Chain, Infallible> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Ok(Chain(names.map(str::to_owned).collect()))
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

/// When user messages may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum UserText {
    /// Before a conversation is refused, with a warning
    LastResort,
    /// Never
    Never,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}
