//! The command line.

use clap::{CommandFactory as _, FromArgMatches as _, Parser};

use crate::commands::Command;
use crate::settings::{ColorFlag, Options};
use crate::terminal::{self, visible_line};

/// Folds a conversation so that it fits a model's context window, and recalls every folded part byte for byte.
#[derive(Debug, Parser)]
#[command(name = "fanfold", version, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Start with `fanfold demo`. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing fits."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    color: ColorFlag,
    /// Print only warnings and errors on stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

impl Cli {
    /// Parses the arguments of this process. Exits with a message if they are wrong.
    pub(crate) fn read() -> Cli {
        let matches = Cli::command().try_get_matches().unwrap_or_else(|error| exit(&error));
        #[cfg_attr(not(feature = "network"), expect(unused_mut))]
        let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| exit(&error));
        #[cfg(feature = "network")]
        if let (Command::Serve(args), Some((_, matches))) = (&mut cli.command, matches.subcommand()) {
            args.ignore_environment_of_shared_proxy(matches);
        }
        cli
    }

    /// The settings that the flags set.
    pub(crate) fn options(&self) -> Options {
        let mut options = self.command.options();
        self.color.set(&mut options);
        options
    }
}

/// Prints an error in the arguments, or the help that was asked for, and exits.
fn exit(error: &clap::Error) -> ! {
    let message = error.render().to_string();
    let is_clean = message.lines().all(|line| visible_line(line) == line);
    if !is_clean {
        // clap would print the arguments as they are.
        terminal::print_message(message);
        std::process::exit(error.exit_code());
    }
    error.exit()
}
