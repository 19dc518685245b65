//! `fanfold top`: the sessions of a running proxy, live.

mod table; //  the status as lines of text
mod screen; // the state of the display, and its keys
#[cfg(unix)]
mod live; //   the terminal, redrawn when the screen changes

use std::io::IsTerminal as _;

use clap::Args;
use fanfold_proxy::meter::{Status, StatusClient, StatusError};
use tokio::runtime::Runtime;

use crate::failure::{Failure, Result};
use crate::settings::Options;
use crate::terminal::{self, Reporter};

/// The default address of the proxy.
const DEFAULT_PROXY: &str = "http://127.0.0.1:7744";

const HELP: &str = "\
Keys: q quits, the arrows select a session, enter shows its details, s changes the
order: activity, money saved, how full the window is, misses.

VIEW IN WINDOW shows the size of the last request within the model's window, and what
folds removed from it; `!` marks views above 85 % of the room. AWAY is the number of
tokens that folds removed. SAVED is the cost without folding minus the actual cost; it
is negative where folding cost more. MISSES are calls repeated because of a fold.

Example: fanfold top --once | head";

/// Watch a running proxy: sessions, folds, savings
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct TopArgs {
    /// Address of the proxy
    #[arg(long, value_name = "URL", env = "FANFOLD_PROXY", default_value = DEFAULT_PROXY)]
    url: String,
    /// Token of the proxy, if it requires one
    #[arg(long, value_name = "TOKEN", env = "FANFOLD_TOKEN", hide_env_values = true)]
    token: Option<String>,
    /// Print a table once and exit; the default without a terminal
    #[arg(long)]
    once: bool,
    /// Print the status once, as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TopArgs, _: &Options, _: Reporter) -> Result<()> {
    let client =
        StatusClient::new(&args.url, args.token.as_deref()).map_err(|error| status_failure(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let source = StatusSource { client, runtime };
    let first = source.status().map_err(|error| status_failure(&error))?;
    if args.json {
        let json = serde_json::to_string_pretty(&first).unwrap_or_default();
        return terminal::print_own_json(json);
    }
    let is_live = !args.once && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    #[cfg(unix)]
    if is_live {
        return live::run(&source, first);
    }
    let _ = is_live;
    terminal::print_page(table::page(&first, source.client.address()))
}

/// Reads the status of the proxy.
struct StatusSource {
    client: StatusClient,
    runtime: Runtime,
}

impl StatusSource {
    fn status(&self) -> Result<Status, StatusError> {
        self.runtime.block_on(self.client.status())
    }
}

fn status_failure(error: &StatusError) -> Failure {
    Failure::new(error.to_string(), error.hint())
}
