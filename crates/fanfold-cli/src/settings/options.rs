//! Everything a person can set: one struct, filled by the flags, by the environment and by each file.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::size::{Amount, Share, Size};
use super::summary::SummaryOptions;

/// Settings of fanfold. Flags come before the environment (`FANFOLD_WINDOW`, ...), that before the project's
/// `.fanfold.toml`, and that before the user's file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Options {
    /// The model's window in tokens: 32000, "32k".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<Size>,
    /// What of the window is kept for the answer, in tokens. Default: a quarter, at most 8192.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reserve: Option<Size>,
    /// The model, which gives the window and the counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Models that may take over: ["gpt-4.1", "my-model"]. The smallest window of the model and of these counts from the
    /// start, so that a conversation fits whichever answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fallback: Option<Chain>,
    /// How it is folded: fanfold, hermes, rules, hamr, mask, window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// A YAML file with a `compaction:` block for the policy `rules`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rules: Option<PathBuf>,
    /// From when on it is folded: aggressive (60 %), moderate (80 %), light (95 %), off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) strategy: Option<String>,
    /// What it is folded for: cost (when that pays), window (only when it no longer fits).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cadence: Option<String>,
    /// The format of conversations: chat, responses, anthropic, sharegpt, hermes. Default: recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<String>,
    /// A topic of which more is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) focus: Option<String>,
    /// Whether what people said may be shortened before a conversation is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) user_text: Option<UserText>,
    /// The path of a tokenizer.json to count with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokenizer: Option<PathBuf>,
    /// Colours: auto, always, never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<Color>,
    /// How far a fold goes down that is made because the window is full, or by hand, as a share of the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) low_mark: Option<Share>,
    /// How much of the end such a fold leaves as it is, as a share of the room. One that is made because it pays keeps the
    /// newest thousand tokens and three steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tail: Option<Share>,
    /// Whether what the agent has seen and done rides at the end of each view.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) working_context: Option<bool>,
    /// Whether a few lines of something folded are recalled when a new message mentions it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) need: Option<bool>,
    /// Where sessions are kept: a file, a folder, or postgres://USER@HOST/DATABASE. Default: a file for each profile in
    /// the user's data folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) store: Option<String>,
    /// The profile: each has a store of its own. One that is set nearer than `store` is hides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    /// The proxy. A project's file can't say this: it would decide where credentials go.
    #[serde(default, skip_serializing_if = "ServeOptions::is_empty")]
    pub(crate) serve: ServeOptions,
    /// What is remembered from one session to the next. A project's file can't say this: it would decide where what you
    /// say goes.
    #[serde(default, skip_serializing_if = "MemoryOptions::is_empty")]
    pub(crate) memory: MemoryOptions,
    /// Summaries by a model. A project's file can't say this: it would decide where conversations and credentials go.
    #[serde(default, skip_serializing_if = "SummaryOptions::is_empty")]
    pub(crate) summary: SummaryOptions,
    /// What is said of single tools.
    #[serde(default, alias = "tool", skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<ToolOptions>,
    /// Windows of models that fanfold does not know, or knows wrongly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) models: Vec<ModelOptions>,
    /// Prices of models that fanfold does not know, or knows wrongly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) prices: Vec<PriceOptions>,
}

/// Models by their names, in the order in which they take over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Chain(pub(crate) Vec<String>);

impl FromStr for Chain {
    type Err = Infallible;

    /// Names with commas between them.
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

/// Where the proxy listens, and where requests go.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServeOptions {
    /// Where it listens: an address, or a port of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) listen: Option<String>,
    /// Where all requests go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) upstream: Option<String>,
    /// Where requests on OpenAI's routes go. Default: https://api.openai.com/v1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) openai: Option<String>,
    /// Where requests on Anthropic's routes go. Default: https://api.anthropic.com.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) anthropic: Option<String>,
    /// Other addresses that a client may name in the header `x-fanfold-upstream`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<String>,
    /// A file with certificates of authorities that upstreams are trusted by, beside those of this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
}

impl ServeOptions {
    pub(crate) fn is_empty(&self) -> bool {
        *self == ServeOptions::default()
    }
}

/// What is remembered: a provider outside, in one of three ways, and the files of `fanfold memory`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryOptions {
    /// A program that speaks MCP on stdin and stdout, with its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    /// Variables of its environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) environment: BTreeMap<String, String>,
    /// The address of an MCP server over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<String>,
    /// The address of a server with the plain routes that the guide describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<String>,
    /// The variable that holds the key of a server over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_env: Option<String>,
    /// The tool of an MCP server that is searched with. Default: one that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) search: Option<String>,
    /// Its argument that says for what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) search_argument: Option<String>,
    /// The tool that is written with. Default: one that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write: Option<String>,
    /// Its argument that says what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write_argument: Option<String>,
    /// Arguments that both tools are always given, as far as they have them.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) arguments: serde_json::Map<String, serde_json::Value>,
    /// Whether the provider is offered what is folded. Default: one with plain routes is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offers: Option<bool>,
    /// Whether the files of `fanfold memory` go into requests of the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<bool>,
    /// How long a turn waits for what is recalled, in milliseconds. Default: 800.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline_ms: Option<u64>,
    /// How much of a request memory may have, in tokens. Default: 1500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Size>,
}

impl MemoryOptions {
    pub(crate) fn is_empty(&self) -> bool {
        *self == MemoryOptions::default()
    }
}

/// Whether what people said may be shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum UserText {
    /// Before a conversation is refused, and told loudly
    LastResort,
    /// Not even then
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

/// What is said of a tool.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolOptions {
    /// The tool's name; a `*` at the end matches any rest.
    pub(crate) name: String,
    /// Whether its results may be folded.
    #[serde(default)]
    pub(crate) fold: FoldTool,
    /// What one result may take at most, as a share of the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cap: Option<Share>,
    /// What its results are, which says how they are condensed. Default: each is looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condense: Option<ResultKind>,
    /// The arguments that name its target, as it is told in digests and stubs: ["project", "ticket"]. Default: those that
    /// are known of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) target: Vec<String>,
}

impl fmt::Display for ToolOptions {
    /// The name, and behind it what is said of the tool: `fetch_ticket (condense log, target ticket)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fold = (self.fold != FoldTool::Auto).then(|| format!("fold {}", word(&self.fold)));
        let cap = self.cap.map(|cap| format!("cap {cap}"));
        let condense = self.condense.map(|kind| format!("condense {}", word(&kind)));
        let target = (!self.target.is_empty()).then(|| format!("target {}", self.target.join(" ")));
        let said: Vec<String> = [fold, cap, condense, target].into_iter().flatten().collect();
        f.write_str(&self.name)?;
        if said.is_empty() { Ok(()) } else { write!(f, " ({})", said.join(", ")) }
    }
}

/// The word by which a file says a value.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// What the results of a tool are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResultKind {
    /// Answers of a program, as data.
    Json,
    /// Output of a program.
    Log,
    /// Stack traces.
    Trace,
    /// Output of a test runner.
    Tests,
    /// Patches.
    Diff,
    /// Source files.
    Code,
    /// Hits of a search.
    Search,
    /// Names of files.
    Listing,
    /// Rows of columns.
    Table,
    /// Web pages.
    Html,
    /// Texts for people.
    Prose,
    /// Encoded or minified data.
    Dense,
}

/// Whether a tool's results may be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FoldTool {
    /// As the policy decides.
    #[default]
    Auto,
    /// Never, but for the last resort before refusing.
    Never,
    /// As soon as they are old, to one line.
    Always,
}

/// The window of a model.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelOptions {
    /// What the model's name begins with.
    pub(crate) pattern: String,
    /// Its window in tokens.
    pub(crate) window: Size,
}

/// The price of a model. What is left out is as fanfold knows it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceOptions {
    /// What the model's name begins with.
    pub(crate) name: String,
    /// Dollars per million tokens of input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<Amount>,
    /// Dollars per million tokens of output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Amount>,
    /// What writing to the cache costs, as a multiple of the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write: Option<Amount>,
    /// What reading from the cache costs, as a multiple of the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<Amount>,
    /// How long a cached prefix lives after it was last used, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lifetime: Option<u64>,
    /// Where a cached prefix can end: prefix (anywhere), marks (where an earlier request ended or fanfold
    /// set a breakpoint), ends (only where an earlier request ended), none.
    #[serde(rename = "match")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) matching: Option<MatchRule>,
    /// Shorter prefixes are not cached, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) minimum: Option<Size>,
    /// Matches are cut to a multiple of this, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<Size>,
    /// Lengths from which on the whole request costs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cliffs: Option<Vec<CliffOptions>>,
}

/// Where a cached prefix can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MatchRule {
    /// At any message up to which two requests are equal.
    Prefix,
    /// Where an earlier request ended, or where a breakpoint was set behind a fold.
    Marks,
    /// Only where an earlier request ended.
    Ends,
    /// Nothing is cached.
    None,
}

/// A length from which on a request costs more.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CliffOptions {
    /// In tokens of input.
    pub(crate) above: Size,
    /// Dollars per million tokens of input.
    pub(crate) base: Amount,
    /// Dollars per million tokens of output.
    pub(crate) output: Amount,
}
