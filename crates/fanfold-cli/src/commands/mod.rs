//! The subcommands, a module each. To add one, write a module with its arguments and its `run`, and list it here.

mod conversation; //   reads, follows and views a conversation
mod stored_session; // the same for a session in the store
mod fold;
mod recall;
mod show;
mod inspect;
pub(crate) mod pipe;
pub(crate) mod replay;
#[cfg(feature = "network")]
pub(crate) mod serve;
mod sessions;
mod search;
#[cfg(feature = "network")]
mod mcp;
#[cfg(feature = "network")]
mod memory;
mod doctor;
#[cfg(feature = "network")]
mod models;
mod prices;
#[cfg(feature = "network")]
mod top;
mod demo;
mod config;
mod completions;

use std::process::ExitCode;

pub(crate) use self::conversation::BodyState;
pub(crate) use self::fold::SummaryOutcome;

use crate::failure::Result;
use crate::settings::{Options, Settings};
use crate::terminal::Reporter;

/// Lists the subcommands: name, arguments, the groups of flags that set settings, and the function that runs it.
macro_rules! commands {
    ($( $(#[$cfg:meta])? $name:ident($args:ty; $($flags:ident),*) => $run:path, )*) => {
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $( $(#[$cfg])? $name($args), )*
        }

        impl Command {
            /// The settings that its flags set.
            pub(crate) fn options(&self) -> Options {
                let mut options = Options::default();
                match self {
                    $( $(#[$cfg])? Command::$name(_args) => { $( _args.$flags.set(&mut options); )* } )*
                }
                options
            }

            /// Runs it.
            pub(crate) fn run(&self, settings: &Settings, reporter: Reporter) -> Result<ExitCode> {
                match self {
                    $( $(#[$cfg])? Command::$name(args) => $run(args, settings, reporter).map(IntoExitCode::into), )*
                }
            }
        }
    };
}

commands! {
    Fold(fold::FoldArgs; fold, store) => fold::run,
    Recall(recall::RecallArgs; fold, store) => recall::run,
    Show(show::ShowArgs; fold, store) => show::run,
    Inspect(inspect::InspectArgs; fold, store) => inspect::run,
    Pipe(pipe::PipeArgs; fold) => pipe::run,
    Replay(replay::ReplayArgs;) => replay::run,
    #[cfg(feature = "network")]
    Serve(Box<serve::ServeArgs>; fold, store) => serve::run,
    Sessions(sessions::SessionsArgs; store) => sessions::run,
    Search(search::SearchArgs; store) => search::run,
    #[cfg(feature = "network")]
    Mcp(mcp::McpArgs; store) => mcp::run,
    #[cfg(feature = "network")]
    Memory(memory::MemoryArgs; store) => memory::run,
    Doctor(doctor::DoctorArgs; store) => doctor::run,
    #[cfg(feature = "network")]
    Models(models::ModelsArgs;) => models::run,
    Prices(prices::PricesArgs;) => prices::run,
    #[cfg(feature = "network")]
    Top(top::TopArgs;) => top::run,
    Demo(demo::DemoArgs;) => demo::run,
    Config(config::ConfigArgs;) => config::run,
    Completions(completions::CompletionsArgs;) => completions::run,
}

impl Command {
    /// True if it reads the settings. The others work even if a settings file is invalid.
    pub(crate) fn needs_settings(&self) -> bool {
        match self {
            Command::Config(args) => args.needs_settings(),
            Command::Completions(_) => false,
            _ => true,
        }
    }
}

/// The return value of a command. Only `serve` returns exit codes of its own.
trait IntoExitCode {
    fn into(self) -> ExitCode;
}

impl IntoExitCode for () {
    fn into(self) -> ExitCode {
        ExitCode::SUCCESS
    }
}

impl IntoExitCode for ExitCode {
    fn into(self) -> ExitCode {
        self
    }
}
