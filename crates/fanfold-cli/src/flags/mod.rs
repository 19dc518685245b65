//! The command line.

mod fold; //     one conversation
mod replay; //   recorded ones, and prices
mod top; //      the live status
mod sessions; // what is kept, found and checked
mod serve; //    the proxy
mod mcp; //      the MCP server
mod memory; //   what is remembered
mod models; //   what is known of models

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::fold::PIPE_HELP;
pub(crate) use self::fold::{FoldArgs, InspectArgs, PipeArgs, RecallArgs, ShowArgs};
use self::mcp::MCP_HELP;
pub(crate) use self::mcp::McpArgs;
use self::memory::MEMORY_HELP;
pub(crate) use self::memory::{MemoryArgs, MemoryCommand};
use self::models::MODELS_HELP;
pub(crate) use self::models::ModelsArgs;
use self::replay::REPLAY_HELP;
pub(crate) use self::replay::{PricesArgs, ReplayArgs};
use self::serve::SERVE_HELP;
pub(crate) use self::serve::{DEFAULT_LISTEN, RecallWay, ServeArgs};
pub(crate) use self::sessions::{
    DeleteArgs, DoctorArgs, EndArgs, EndWhy, ExportArgs, ExportFormat, ForkArgs, ImportArgs, ListArgs,
    OneArgs, PinArgs, PruneArgs, RewindArgs, SearchArgs, SessionsCommand, SizeArgs, WordsArgs,
};
use self::sessions::{SEARCH_HELP, SESSIONS_HELP};
use self::top::TOP_HELP;
pub(crate) use self::top::TopArgs;
use crate::settings::{ColorFlag, Options, Size, StoreFlags};

/// Folds a conversation so that it fits a model's window, and opens it again, byte for byte.
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
    /// Say nothing on stderr but warnings and errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Fold a conversation so that it fits
    #[command(after_help = "Example: fanfold fold chat.json --window 32k --explain > folded.json")]
    Fold(FoldArgs),
    /// Open a fold again, byte for byte
    #[command(after_help = "Example: fanfold recall chat.json 291227 --lines 1-40\n\n\
        Give the same --window and --policy as for the fold: the folds follow from them.")]
    Recall(RecallArgs),
    /// Print a conversation as text, message by message
    #[command(after_help = "Example: fanfold show chat.json --folded --window 32k | less")]
    Show(ShowArgs),
    /// Tell the budget, the folds, or what the agent knows
    #[command(after_help = "Example: fanfold inspect chat.json --ledger --window 32k")]
    Inspect(InspectArgs),
    /// Fold conversations for another program, over JSON lines
    #[command(after_help = PIPE_HELP)]
    Pipe(PipeArgs),
    /// Replay recorded conversations: what each policy would have sent, held and cost
    #[command(after_help = REPLAY_HELP)]
    Replay(ReplayArgs),
    /// Stand in front of a provider and fold what passes
    #[command(after_help = SERVE_HELP)]
    Serve(Box<ServeArgs>),
    /// Keep, list, fork, rewind, export and import sessions
    #[command(subcommand, after_help = SESSIONS_HELP)]
    Sessions(SessionsCommand),
    /// Find what was said, in any session
    #[command(after_help = SEARCH_HELP)]
    Search(SearchArgs),
    /// Offer search, recall and status to agents, over MCP
    #[command(after_help = MCP_HELP)]
    Mcp(McpArgs),
    /// Remember something from one session to the next
    #[command(after_help = MEMORY_HELP)]
    Memory(MemoryArgs),
    /// Check the store: every message, every fold, the index
    #[command(after_help = "Example: fanfold doctor --repair")]
    Doctor(DoctorArgs),
    /// Tell how long a prompt a model takes, by the table or by its server
    #[command(after_help = MODELS_HELP)]
    Models(ModelsArgs),
    /// Tell what providers charge, and how their caches match
    #[command(after_help = "Example: fanfold prices claude-opus-5-5")]
    Prices(PricesArgs),
    /// Watch a running proxy: sessions, folds, what they save
    #[command(after_help = TOP_HELP)]
    Top(TopArgs),
    /// See it work on an example
    #[command(after_help = "Example: fanfold demo --window 8k")]
    Demo(DemoArgs),
    /// Show, describe or start the settings
    #[command(subcommand, after_help = "Example: fanfold config show")]
    Config(ConfigCommand),
    /// Print a completion script for a shell
    #[command(
        after_help = "Example: fanfold completions bash > ~/.local/share/bash-completion/completions/fanfold"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The window to fold into
    #[arg(short, long, value_name = "TOKENS", default_value = "16k")]
    pub(crate) window: Size,
    /// Print the example itself, as it is before it is folded
    #[arg(long)]
    pub(crate) print: bool,
    /// As JSON: the sizes, what each fold did, and what would be sent as `body`
    #[arg(long, conflicts_with = "print")]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print each setting that is used and where it comes from, and tell what is wrong with them
    Show {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of settings files
    Schema,
    /// Write a settings file with everything commented out
    Init {
        /// The user's file instead of the project's
        #[arg(long)]
        user: bool,
    },
    /// Print where the settings files are
    Path {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

impl Cli {
    /// The command line of this program; a wrong one is told, and ends it.
    pub(crate) fn read() -> Cli {
        let matches = Cli::command().get_matches();
        let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
        if let (Command::Serve(args), Some((_, matches))) = (&mut cli.command, matches.subcommand()) {
            args.keep_to_its_command(matches);
        }
        cli
    }

    /// The settings that flags set.
    pub(crate) fn options(&self) -> Options {
        let fold = match &self.command {
            Command::Fold(args) => Some(&args.fold),
            Command::Recall(args) => Some(&args.fold),
            Command::Show(args) => Some(&args.fold),
            Command::Inspect(args) => Some(&args.fold),
            Command::Pipe(args) => Some(&args.fold),
            Command::Serve(args) => Some(&args.fold),
            _ => None,
        };
        let mut options = Options::default();
        self.color.set(&mut options);
        if let Some(fold) = fold {
            fold.set(&mut options);
        }
        if let Some(store) = self.store() {
            store.set(&mut options);
        }
        if let Command::Replay(args) = &self.command {
            options.cadence.clone_from(&args.cadence);
        }
        options
    }

    fn store(&self) -> Option<&StoreFlags> {
        match &self.command {
            Command::Fold(args) => Some(&args.store),
            Command::Recall(args) => Some(&args.store),
            Command::Show(args) => Some(&args.store),
            Command::Inspect(args) => Some(&args.store),
            Command::Serve(args) => Some(&args.store),
            Command::Sessions(command) => Some(command.store()),
            Command::Search(args) => Some(&args.store),
            Command::Mcp(args) => Some(&args.store),
            Command::Memory(args) => Some(&args.store),
            Command::Doctor(args) => Some(&args.store),
            Command::Pipe(_)
            | Command::Replay(_)
            | Command::Models(_)
            | Command::Prices(_)
            | Command::Demo(_)
            | Command::Top(_)
            | Command::Config(_)
            | Command::Completions { .. } => None,
        }
    }
}
