//! The command line of the MCP server.

use std::path::PathBuf;

use clap::Args;

use crate::log::{Look, Talk};
use crate::settings::StoreFlags;

pub(crate) const MCP_HELP: &str = "\
Three tools for any agent that speaks MCP: search (what was said in any session),
recall (what was folded, by the digits in brackets), status (how full a window is).
All of them only read. A client starts it by itself:

  claude mcp add fanfold -- fanfold mcp
  codex mcp add fanfold -- fanfold mcp

Without --listen it speaks over stdin and stdout, and ends when stdin does. With it,
many clients share one server: http://127.0.0.1:8765/mcp. On an address that other
machines reach, a token is needed (FANFOLD_TOKEN, sent as Authorization: Bearer).
--talk info tells of each call on stderr, without what was said.";

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Serve over HTTP on this address or port, instead of stdin and stdout: 8765, 127.0.0.1:8765
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The session that is meant where a call names none; what its view holds is left out of searches
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// What clients must send, over HTTP
    #[arg(long, value_name = "TOKEN", env = "FANFOLD_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// The file that holds the token; comes before --token
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,
    /// What lines about calls look like, on stderr: human, json, off
    #[arg(
        long,
        value_name = "LOOK",
        env = "FANFOLD_LOG",
        default_value = "human",
        hide_possible_values = true
    )]
    pub(crate) log: Look,
    /// How much they tell: warn, info, debug, trace
    #[arg(
        long,
        value_name = "LEVEL",
        env = "FANFOLD_TALK",
        default_value = "warn",
        hide_possible_values = true
    )]
    pub(crate) talk: Talk,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}
