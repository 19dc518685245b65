//! The tables and lists of a settings file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use fanfold_core::ContentKind;
#[cfg(feature = "network")]
use fanfold_http::WebAccess;
use fanfold_wire::Provider;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::numbers::{Amount, Share, Size};

/// True if a table is not set.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Addresses of the proxy and of its upstreams.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServeOptions {
    /// Address to listen on, or a port of this machine.
    pub(crate) listen: Option<String>,
    /// Upstream for all requests.
    pub(crate) upstream: Option<String>,
    /// Upstream for OpenAI's routes. Default: https://api.openai.com/v1.
    pub(crate) openai: Option<String>,
    /// Upstream for Anthropic's routes. Default: https://api.anthropic.com.
    pub(crate) anthropic: Option<String>,
    /// Other upstreams that a client may name in the header `x-fanfold-upstream`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allowed: Vec<String>,
    /// Other names of this machine that requests may use as their host, without a token.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hosts: Vec<String>,
    /// Web pages and browser-based programs that may send requests: `https://chat.example`, `app://name`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) origins: Vec<String>,
    /// A file with certificates of additional authorities to trust for upstreams.
    pub(crate) ca: Option<PathBuf>,
}

impl ServeOptions {
    /// The upstream for the routes of one provider, if one is set.
    pub(crate) fn upstream_of(&self, provider: &Provider) -> Option<&str> {
        let set = [("openai", &self.openai), ("anthropic", &self.anthropic)];
        set.into_iter().find(|(name, _)| *name == provider.name)?.1.as_deref()
    }

    /// The host names and web pages that may use a server.
    #[cfg(feature = "network")]
    pub(crate) fn web_access(&self) -> WebAccess {
        WebAccess { hosts: self.hosts.clone(), origins: self.origins.clone() }
    }

    pub(super) fn labels(&self) -> Vec<String> {
        let addresses = [&self.listen, &self.upstream, &self.openai, &self.anthropic];
        addresses
            .into_iter()
            .flatten()
            .chain(&self.allowed)
            .chain(&self.hosts)
            .chain(&self.origins)
            .cloned()
            .collect()
    }
}

/// Memory across sessions: an external provider, reached in one of three ways, and the files of `fanfold memory`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryOptions {
    /// A program that speaks MCP on stdin and stdout, with its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) command: Vec<String>,
    /// Environment variables for the program.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) environment: BTreeMap<String, String>,
    /// The address of an MCP server over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mcp: Option<String>,
    /// The address of a server with the plain routes that the guide describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<String>,
    /// The environment variable that holds the key of a server over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key_env: Option<String>,
    /// The search tool of an MCP server. Default: a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) search: Option<String>,
    /// The argument of the search tool that takes the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) search_argument: Option<String>,
    /// The write tool of an MCP server. Default: a known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write: Option<String>,
    /// The argument of the write tool that takes the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write_argument: Option<String>,
    /// Fixed arguments for both tools; those that a tool does not have are left out.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) arguments: serde_json::Map<String, serde_json::Value>,
    /// Offer the provider what is folded. Default: only a provider with plain routes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offers: Option<bool>,
    /// Add the files of `fanfold memory` to requests of the proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) files: Option<bool>,
    /// Maximum time that a turn waits for a recall, in milliseconds. Default: 800.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline_ms: Option<u64>,
    /// Maximum size of memory in a request, in tokens. Default: 1500.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<Size>,
}

impl MemoryOptions {
    pub(super) fn labels(&self) -> Vec<String> {
        let provider = self.command.first().or(self.mcp.as_ref()).or(self.http.as_ref());
        let files = (self.files == Some(true)).then(|| "files".to_owned());
        provider.cloned().into_iter().chain(files).collect()
    }
}

/// Declares the options of a model that writes summaries: its own fields around those of its server.
macro_rules! summary_model {
    ($(#[$about:meta])* $name:ident { $($before:tt)* } { $($after:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            $($before)*
            /// The base URL of its server. Default: OpenAI's or Anthropic's own address, by the model's name; for
            /// the main model, the server of the summary model, with the same key.
            pub(crate) url: Option<String>,
            /// The API style: openai, anthropic. Default: by the address, or the model's name.
            pub(crate) style: Option<SummaryStyle>,
            /// The environment variable that holds the key. Default: OPENAI_API_KEY or ANTHROPIC_API_KEY at their own
            /// addresses, and none elsewhere.
            pub(crate) key_env: Option<String>,
            /// A command that prints the key, instead of a variable.
            pub(crate) key_command: Option<String>,
            /// Its context window in tokens. Default: from the model table, or its server.
            pub(crate) window: Option<Size>,
            $($after)*
        }

        impl $name {
            /// How the server of the model is reached.
            pub(crate) fn server(&self) -> SummaryServer<'_> {
                SummaryServer {
                    url: self.url.as_deref(),
                    style: self.style,
                    key_env: self.key_env.as_deref(),
                    key_command: self.key_command.as_deref(),
                }
            }
        }
    };
}

/// How the server of a summary model is reached.
#[derive(Clone, Copy)]
pub(crate) struct SummaryServer<'a> {
    pub(crate) url: Option<&'a str>,
    pub(crate) style: Option<SummaryStyle>,
    pub(crate) key_env: Option<&'a str>,
    pub(crate) key_command: Option<&'a str>,
}

summary_model! {
    /// The model that writes summaries of what is folded. Without a `model`, no summaries are written.
    SummaryOptions {
        /// The model. Naming one switches summaries on.
        pub(crate) model: Option<String>,
    } {
        /// Timeout for one answer, in seconds. Default: 120.
        pub(crate) timeout: Option<u64>,
        /// Leave the conversation unchanged if a summary fails. Default: fold it without a summary.
        pub(crate) abort_on_failure: Option<bool>,
        /// The main model, which is used when the summary model fails.
        pub(crate) main: Option<MainOptions>,
    }
}

summary_model! {
    /// The main model, which writes the summary when the summary model fails.
    MainOptions {
        /// The model.
        pub(crate) model: String,
    } {}
}

impl SummaryOptions {
    pub(super) fn labels(&self) -> Vec<String> {
        self.model.iter().chain(self.main.iter().map(|main| &main.model)).cloned().collect()
    }
}

/// The API style of a model's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SummaryStyle {
    /// Chat Completions, as most servers offer it.
    #[serde(rename = "openai")]
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
}

impl SummaryStyle {
    /// The provider whose API has this style.
    pub(crate) fn provider(self) -> &'static Provider {
        let name = match self {
            SummaryStyle::OpenAi => "openai",
            SummaryStyle::Anthropic => "anthropic",
        };
        Provider::find(name).expect("the registry has the provider")
    }
}

/// Rules for one tool.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolOptions {
    /// The tool's name; a `*` at the end matches any suffix.
    pub(crate) name: String,
    /// When its results may be folded.
    #[serde(default)]
    pub(crate) fold: FoldTool,
    /// The maximum size of one result, as a share of the room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cap: Option<Share>,
    /// The kind of its results, which selects how they are condensed. Default: each result is examined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condense: Option<ResultKind>,
    /// The arguments that name its target in records and stubs: ["project", "ticket"]. Default: those of known tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) target: Vec<String>,
}

impl ToolOptions {
    /// The name and the rules: `fetch_ticket (condense log, target ticket)`.
    pub(super) fn label(&self) -> String {
        let fold = match self.fold {
            FoldTool::Auto => None,
            FoldTool::Never => Some("fold never".to_owned()),
            FoldTool::Always => Some("fold always".to_owned()),
        };
        let cap = self.cap.map(|cap| format!("cap {cap}"));
        let condense = self.condense.map(|kind| format!("condense {}", kind.0.name()));
        let target = (!self.target.is_empty()).then(|| format!("target {}", self.target.join(" ")));
        let rules: Vec<String> = [fold, cap, condense, target].into_iter().flatten().collect();
        if rules.is_empty() { self.name.clone() } else { format!("{} ({})", self.name, rules.join(", ")) }
    }
}

/// When a tool's results may be folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FoldTool {
    /// As the policy decides.
    #[default]
    Auto,
    /// Never, except as the last resort before refusing.
    Never,
    /// As soon as they are old, to one line.
    Always,
}

/// A kind of tool result, under the lower-case name of the condenser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultKind(pub(crate) ContentKind);

impl<'de> Deserialize<'de> for ResultKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ResultKind, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = ContentKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.map(ResultKind).ok_or_else(|| {
            let names = ContentKind::ALL.map(|kind| format!("`{}`", kind.name())).join(", ");
            de::Error::custom(format!("unknown variant `{name}`, expected one of {names}"))
        })
    }
}

impl Serialize for ResultKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.name())
    }
}

impl JsonSchema for ResultKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ResultKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let kinds = ContentKind::ALL.map(|kind| json_schema!({ "type": "string", "const": kind.name() }));
        json_schema!({ "description": "The kind of a tool's results.", "oneOf": kinds })
    }
}

/// The window of a model.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelOptions {
    /// A prefix of the model's name.
    pub(crate) pattern: String,
    /// Its window in tokens.
    pub(crate) window: Size,
}

impl ModelOptions {
    pub(super) fn label(&self) -> String {
        self.pattern.clone()
    }
}

/// The price of a model. Omitted fields keep the values that fanfold knows.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriceOptions {
    /// A prefix of the model's name.
    pub(crate) name: String,
    /// Dollars per million tokens of input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<Amount>,
    /// Dollars per million tokens of output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) output: Option<Amount>,
    /// Cost of writing to the cache, as a multiple of the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) write: Option<Amount>,
    /// Cost of reading from the cache, as a multiple of the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read: Option<Amount>,
    /// Lifetime of a cached prefix after its last use, in seconds.
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
    /// Request lengths above which the whole request costs more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cliffs: Option<Vec<CliffOptions>>,
}

impl PriceOptions {
    pub(super) fn label(&self) -> String {
        self.name.clone()
    }
}

/// Where a cached prefix can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MatchRule {
    /// At any message up to which two requests are equal.
    Prefix,
    /// Where an earlier request ended, or where a breakpoint was set after a fold.
    Marks,
    /// Only where an earlier request ended.
    Ends,
    /// Nothing is cached.
    None,
}

/// A request length above which a request costs more.
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
