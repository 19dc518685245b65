//! The command line of the proxy.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use crate::log::{Look, Talk};
use crate::settings::{FoldFlags, StoreFlags};

/// Where a proxy listens if nothing else is said.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7744";

pub(crate) const SERVE_HELP: &str = "\
Give a client its base URL, and nothing else changes for it:

  ANTHROPIC_BASE_URL=http://127.0.0.1:7744 claude
  OPENAI_BASE_URL=http://127.0.0.1:7744/v1 my-agent

or let fanfold start it, on a port of its own, and end with it:

  fanfold serve -- claude
  fanfold serve -- codex exec \"fix the build\"

Requests go to api.openai.com and api.anthropic.com by their paths; --upstream names one
address for all. Credentials are the client's and are only passed on. Whatever fails here,
the request goes out as it came. /fanfold/health, /fanfold/ready, /fanfold/metrics and
/fanfold/status tell how it stands, and `fanfold top` shows it.";

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Where to listen: an address, or a port of this machine; 0 lets the system choose [default: 127.0.0.1:7744]
    #[arg(long, value_name = "ADDRESS", env = "FANFOLD_LISTEN")]
    pub(crate) listen: Option<String>,
    /// Where all requests go [default: https://api.openai.com/v1 and https://api.anthropic.com]
    #[arg(long, value_name = "URL", env = "FANFOLD_UPSTREAM")]
    pub(crate) upstream: Option<String>,
    /// Certificates of authorities that upstreams are trusted by, as PEM; beside those of this machine and SSL_CERT_FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// Change nothing; count what folding would have saved
    #[arg(long)]
    pub(crate) observe: bool,
    /// How the model opens folds: tool (added to the client's tools, answered here), mcp (by the client's MCP server), off
    #[arg(long, value_name = "WAY", default_value = "tool", hide_possible_values = true)]
    pub(crate) recall: RecallWay,
    /// What clients must send as x-fanfold-token; needed where other machines can reach it
    #[arg(long, value_name = "TOKEN", env = "FANFOLD_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// The file that holds the token; comes before --token
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// What our own work on a request may take, in milliseconds; then it goes out as it came
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    pub(crate) deadline: u64,
    /// The largest body that is folded, in megabytes; larger ones go through as they come
    #[arg(long, value_name = "MB", default_value_t = 64)]
    pub(crate) max_body: usize,
    /// For how long upstream may be silent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) upstream_idle: u64,
    /// For how long a client may be silent, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) client_idle: u64,
    /// What lines about requests look like: human, json, off [default: human; off with a COMMAND]
    #[arg(long, value_name = "LOOK", env = "FANFOLD_LOG", hide_possible_values = true)]
    pub(crate) log: Option<Look>,
    /// How much they tell: warn, info, debug, trace
    #[arg(
        long,
        value_name = "LEVEL",
        env = "FANFOLD_TALK",
        default_value = "info",
        hide_possible_values = true
    )]
    pub(crate) talk: Talk,
    /// A collector of OpenTelemetry that spans are sent to, over HTTP: http://127.0.0.1:4318
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) fold: FoldFlags,
    /// A command to start with its base URLs set; fanfold ends with it
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

impl ServeArgs {
    /// Forgets what the environment says of address and token, if there is a command: that is for a proxy that several
    /// clients share, and one that is started here would not get past it.
    pub(super) fn keep_to_its_command(&mut self, matches: &ArgMatches) {
        if self.command.is_empty() {
            return;
        }
        let is_of_environment = |id: &str| matches.value_source(id) == Some(ValueSource::EnvVariable);
        if is_of_environment("listen") {
            self.listen = None;
        }
        if is_of_environment("token") {
            self.token = None;
        }
    }
}

/// How a model opens folds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RecallWay {
    /// By a tool that is added to the client's, and answered here
    Tool,
    /// By the client's MCP server
    Mcp,
    /// Not at all
    Off,
}
