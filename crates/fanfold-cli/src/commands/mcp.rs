//! `fanfold mcp`: search, recall and status for agents, over MCP.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use fanfold_mcp::{AccessRules, PATHS, Server, ServerSettings};
use tokio::runtime::Runtime;

use super::search::OtherProfiles;
use super::serve::{parse_address, read_token};
use crate::failure::{Failure, Result};
use crate::settings::{Options, StoreFlags};
use crate::store;
use crate::terminal::log::{self, LogFormat, LogLevel};
use crate::terminal::signals::Signals;
use crate::terminal::{Reporter, paint, style, text};

const HELP: &str = "\
Three read-only tools for any agent that speaks MCP: search (messages of any session),
recall (folded parts, by their handles: #12), status (how full the window is).
The client starts the server:

  claude mcp add fanfold -- fanfold mcp
  codex mcp add fanfold -- fanfold mcp

Without --listen it speaks over stdin and stdout, and ends when stdin does. With it,
many clients share one server: http://127.0.0.1:8765/mcp. On an address that other
machines can reach, a token is required (FANFOLD_TOKEN, sent as Authorization: Bearer).
--talk info logs each call on stderr, without its content.";

/// Offer search, recall and status to agents, over MCP
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct McpArgs {
    /// Serve over HTTP on this address or port, instead of stdin and stdout: 8765, 127.0.0.1:8765
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Default session of calls; searches leave out what its view contains
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Token that clients must send, over HTTP
    #[arg(long, value_name = "TOKEN", env = "FANFOLD_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// File that holds the token; takes precedence over --token
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,
    /// Format of log lines on stderr: human, json, off
    #[arg(
        long,
        value_name = "FORMAT",
        env = "FANFOLD_LOG",
        default_value = "human",
        hide_possible_values = true
    )]
    log: LogFormat,
    /// Log level: warn, info, debug, trace
    #[arg(
        long,
        value_name = "LEVEL",
        env = "FANFOLD_TALK",
        default_value = "warn",
        hide_possible_values = true
    )]
    talk: LogLevel,
    #[command(flatten)]
    pub(super) store: StoreFlags,
}

/// How long calls in progress may take at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn run(args: &McpArgs, options: &Options, reporter: Reporter) -> Result<()> {
    log::start(args.log, args.talk);
    let address = store::address(options)?;
    let settings = ServerSettings {
        session: args.session.clone(),
        profiles: Arc::new(OtherProfiles),
        ..ServerSettings::default()
    };
    let server = Server::new(&address, settings);
    let runtime = Runtime::new()?;
    let done = match &args.listen {
        None => runtime.block_on(on_stdio(server.clone(), reporter)),
        Some(listen) => runtime.block_on(on_http(server.clone(), args, listen, options, reporter)),
    };
    // A call that hangs in the store must not keep the program running.
    runtime.shutdown_timeout(Duration::from_secs(1));
    // Outside of the runtime, because a PostgreSQL store has a runtime of its own, which cannot end inside another.
    drop(server);
    done
}

async fn on_stdio(server: Server, reporter: Reporter) -> Result<()> {
    if std::io::stdin().is_terminal() {
        reporter.line("speaking MCP on stdin and stdout, usually started by a client; Ctrl-D ends it");
    }
    fanfold_mcp::stdio(server).await.map_err(|error| {
        Failure::new(format!("the client could not be served: {error}"), "start it from an MCP client")
    })
}

async fn on_http(
    server: Server,
    args: &McpArgs,
    listen: &str,
    options: &Options,
    reporter: Reporter,
) -> Result<()> {
    let address = parse_address(listen)?;
    let token = read_token(args.token_file.as_deref(), args.token.as_deref())?;
    let access = AccessRules::new(address, token.as_deref(), options.serve.web_access())
        .map_err(|error| Failure::new(error.to_string(), error.hint()))?;
    let listener = fanfold_http::bind(address).map_err(|error| {
        let hint = "choose another port; 0 lets the system choose one";
        Failure::new(format!("cannot listen on {address}: {error}"), hint)
    })?;
    let address = listener.local_addr()?;
    let store = store::address(options)?;
    let mut signals = Signals::listen();
    reporter
        .line(text![paint(style::BOLD, "MCP at"), format!(" http://{address}{}, store {store}", PATHS[0])]);
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(fanfold_mcp::listen(server, access, listener, async {
        drop(stopped.await);
    }));
    signals.next().await;
    drop(stop);
    tokio::select! {
        served = serving => served.map_err(|error| Failure::caused_by("the server failed", &error)),
        // Idle connections must not keep the server running.
        () = tokio::time::sleep(SHUTDOWN_TIMEOUT) => Ok(()),
        // A second signal ends it at once.
        _ = signals.next() => Ok(()),
    }
}
