//! The program `fanfold`: flags, settings, terminal.
//!
//! Stdout is data, stderr is for people. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing fits.

mod flags; //       the command line
mod settings; //    flags, environment and files, merged
mod rules_file; //  the rule middleware's YAML
mod choose; //      policy, budget and counter
mod store; //       where sessions are kept
mod summaries; //   who writes summaries
mod input; //       reads a conversation
mod output; //      writes files whole or not at all
mod file_limit; //  a file that may not grow
mod terminal; //    colours, widths, the two ways out
mod progress; //    how far something is
mod log; //         lines about what happens
mod explain; //     receipts in words
mod picture; //     sizes as bars and lines
mod report_json; // receipts as JSON
mod failure; //     why a command stopped
mod commands; //    what can be done

use std::process::ExitCode;

use crate::commands::{
    Say, completions, config, demo, doctor, fold, inspect, mcp, memory, models, pipe, prices, recall, replay,
    search, serve, sessions, show, top,
};
use crate::failure::Failure;
use crate::flags::{Cli, Command};
use crate::settings::Color;
use crate::terminal::{paint, style};

fn main() -> ExitCode {
    file_limit::heed();
    match run(&Cli::read()) {
        Ok(code) => code,
        Err(error) => ExitCode::from(tell(&error)),
    }
}

fn run(cli: &Cli) -> anyhow::Result<ExitCode> {
    let directory = std::env::current_dir().unwrap_or_default();
    let flags = cli.options();
    terminal::set_color(flags.color.unwrap_or_default());
    if let Command::Completions { shell } = &cli.command {
        return completions::run(*shell).map(|()| ExitCode::SUCCESS);
    }
    if let Command::Config(command) = &cli.command
        && !config::needs_settings(command)
    {
        return config::run_without_settings(command, &directory).map(|()| ExitCode::SUCCESS);
    }
    let settings = settings::read(flags, &directory)?;
    terminal::set_color(settings.color.unwrap_or(Color::Auto));
    let say = Say { is_quiet: cli.quiet };
    settings.warnings.iter().for_each(|warning| say.warn(warning));
    // A client that is started here has an exit code of its own.
    if let Command::Serve(args) = &cli.command {
        return serve::run(args, &settings, say);
    }
    match &cli.command {
        Command::Fold(args) => fold::run(args, &settings, say),
        Command::Recall(args) => recall::run(args, &settings, say),
        Command::Show(args) => show::run(args, &settings, say),
        Command::Inspect(args) => inspect::run(args, &settings, say),
        Command::Pipe(args) => pipe::run(args, &settings, say),
        Command::Replay(args) => replay::run(args, &settings, say),
        Command::Sessions(command) => sessions::run(command, &settings, say),
        Command::Search(args) => search::run(args, &settings),
        Command::Mcp(args) => mcp::run(args, &settings, say),
        Command::Memory(args) => memory::run(args, &settings, say),
        Command::Doctor(args) => doctor::run(args, &settings),
        Command::Models(args) => models::run(args, &settings),
        Command::Prices(args) => prices::run(args, &settings),
        Command::Top(args) => top::run(args),
        Command::Demo(args) => demo::run(args),
        Command::Config(command) => config::run(command, &settings),
        Command::Serve(_) | Command::Completions { .. } => Ok(()),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Tells a person what went wrong and what to do next. Returns the exit code.
fn tell(error: &anyhow::Error) -> u8 {
    let mut text = format!("{} {error}\n", paint(style::ERROR, "error:"));
    for cause in error.chain().skip(1) {
        text.push_str(&format!("  because {cause}\n"));
    }
    let failure = error.downcast_ref::<Failure>();
    if let Some(hint) = failure.and_then(Failure::hint) {
        text.push_str(&format!("\n{} {hint}\n", paint(style::HINT, "hint:")));
    }
    terminal::say(&text);
    failure.map_or(Failure::CODE, Failure::code)
}
