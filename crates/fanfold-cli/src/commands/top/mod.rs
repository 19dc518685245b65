//! `fanfold top`: the sessions of a running proxy, live.

mod picture; // the status as lines of text
mod screen; //  what is shown, and what keys do
#[cfg(unix)]
mod live; //    the terminal, redrawn each second

use std::io::IsTerminal as _;

use fanfold_proxy::meter::{Status, StatusClient, StatusError};
use tokio::runtime::Runtime;

use crate::failure::Failure;
use crate::flags::TopArgs;
use crate::terminal;

pub(crate) fn run(args: &TopArgs) -> anyhow::Result<()> {
    let watcher = StatusClient::new(&args.url, args.token.as_deref()).map_err(|error| failed(&error))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let source = Source { watcher, runtime };
    let first = source.status().map_err(|error| failed(&error))?;
    if args.json {
        return terminal::data(&format!("{}\n", serde_json::to_string_pretty(&first)?));
    }
    let is_live = !args.once && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    #[cfg(unix)]
    if is_live {
        return live::run(&source, first);
    }
    let _ = is_live;
    terminal::page(&picture::page(&first, source.watcher.address()))
}

/// Where the status comes from.
struct Source {
    watcher: StatusClient,
    runtime: Runtime,
}

impl Source {
    fn status(&self) -> Result<Status, StatusError> {
        self.runtime.block_on(self.watcher.status())
    }
}

fn failed(error: &StatusError) -> Failure {
    Failure::new(error.to_string(), error.hint())
}
