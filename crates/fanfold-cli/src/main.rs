//! The program `fanfold`: flags, settings, terminal.
//!
//! Stdout is data, stderr is for people. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing fits.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]
#![cfg_attr(
    not(feature = "network"),
    allow(
        dead_code,
        unused_imports,
        reason = "some settings and messages belong to commands that the program leaves out"
    )
)]

mod cli; //      the command line
mod settings; // flags, environment and files, merged
mod setup; //    policy, budget, counter and summary models for the settings
mod store; //    the session store for the settings
mod files; //    input, output, and the file size limit
mod terminal; // stdout, stderr, colours, progress, log lines, signals
mod report; //   receipts as text and JSON, sizes as charts
mod failure; //  errors with hints and exit codes
mod commands; // the subcommands

use std::process::ExitCode;

use crate::cli::Cli;
use crate::failure::{Failure, Result};
use crate::settings::Settings;
use crate::terminal::{Reporter, paint, style, text};

fn main() -> ExitCode {
    files::size_limit::ignore_signal();
    run(&Cli::read()).unwrap_or_else(|failure| {
        report(&failure);
        ExitCode::from(failure.code())
    })
}

fn run(cli: &Cli) -> Result<ExitCode> {
    let flags = cli.options();
    terminal::set_color(flags.color.unwrap_or_default());
    let settings = if cli.command.needs_settings() {
        settings::read(flags, &std::env::current_dir().unwrap_or_default())?
    } else {
        Settings::default()
    };
    if let Some(color) = settings.color {
        terminal::set_color(color);
    }
    let reporter = Reporter { is_quiet: cli.quiet };
    settings.warnings.iter().for_each(|warning| reporter.warn(warning));
    cli.command.run(&settings, reporter)
}

/// Prints the error, its cause and its hint.
fn report(failure: &Failure) {
    let mut message = text![paint(style::ERROR, "error:"), format!(" {failure}\n")];
    if let Some(cause) = failure.cause() {
        message.push(format!("  because {cause}\n"));
    }
    if let Some(hint) = failure.hint() {
        message.push(text!["\n", paint(style::HINT, "hint:"), format!(" {hint}\n")]);
    }
    terminal::print_message(message);
}
