//! `fanfold completions`: completion scripts for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::failure::Result;
use crate::settings::Options;
use crate::terminal::{self, Reporter};

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Example: fanfold completions bash > ~/.local/share/bash-completion/completions/fanfold"
)]
pub(crate) struct CompletionsArgs {
    /// Shell to complete for
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, _: &Options, _: Reporter) -> Result<()> {
    let mut script = Vec::new();
    generate(args.shell, &mut Cli::command(), "fanfold", &mut script);
    terminal::print_page(&*String::from_utf8_lossy(&script))
}
