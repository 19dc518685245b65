//! The command line.

mod sessions; // what is kept, found and checked
mod serve; //    the proxy
mod mcp; //      the MCP server
mod memory; //   what is remembered
mod models; //   what is known of models

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use fanfold_core::{Cadence, Handle, Policy, Strategy};

use self::mcp::MCP_HELP;
pub(crate) use self::mcp::McpArgs;
use self::memory::MEMORY_HELP;
pub(crate) use self::memory::{MemoryArgs, MemoryCommand};
use self::models::MODELS_HELP;
pub(crate) use self::models::ModelsArgs;
use self::serve::SERVE_HELP;
pub(crate) use self::serve::{RecallWay, ServeArgs, USUAL_LISTEN};
pub(crate) use self::sessions::{
    DeleteArgs, DoctorArgs, EndArgs, EndWhy, ExportArgs, ExportFormat, ForkArgs, ImportArgs, ListArgs,
    OneArgs, PinArgs, PruneArgs, RewindArgs, SearchArgs, SessionsCommand, SizeArgs, StoreFlags, WordsArgs,
};
use self::sessions::{SEARCH_HELP, SESSIONS_HELP};
use crate::settings::{Chain, Color, Options, Size, UserText};

/// Folds a conversation so that it fits a model's window, and opens it again, byte for byte.
#[derive(Debug, Parser)]
#[command(name = "fanfold", version, max_term_width = 100, arg_required_else_help = true)]
#[command(
    after_help = "Start with `fanfold demo`. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 nothing fits."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// When to use colours: auto, always, never
    #[arg(long, global = true, value_name = "WHEN", hide_possible_values = true)]
    color: Option<Color>,
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
    /// Print a conversation as text, one line per message
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

const PIPE_HELP: &str = r#"One JSON object per line on stdin, answered by one per line on stdout:
  {"session": "a", "call": 1, "window": 32000, "messages": [...], "tools": [...]}
  {"messages": [...], "handles": [{"id": "291227", "covers": [7]}], "report": {...}}

`messages` is the whole history, or only what is new since the last call. It is
taken as new if it does not begin with what is held and `call` is one more than
the last, or if the request says "incremental": true.
`window` is what messages and tools may fill: nothing is kept for the answer
unless "reserve" or --reserve says so. "model" and "format" may be given, too;
what a later request leaves out stays as it was. With a "model" whose price is
known it is folded when that pays (--cadence); "idle" tells for how many seconds
nothing was sent, so that a cold cache is known.

On what is held, by "session":
  {"op": "expand", "handle": "291227"}   answered by {"content": "..."}
  {"op": "recall", "handle": ...}          with "lines": [1, 40] or "search": "text"
  {"op": "pin", "entry": 3}                and "unpin"; entries count from 0
  {"op": "focus", "topic": "the parser"}   more of it is kept; "" ends it
  {"op": "fold", "from": 2, "to": 9}       or without them: whatever is old, more of a
                                           "topic" kept; `report.feedback` tells of it
  {"op": "unfold", "handle": ...}
  {"op": "report"}

What goes wrong is answered by {"error": {"message", "hint", "line"}}. If nothing
fits, "kind" is "overflow" and "original" is true: send what you have as it is.

Example: fanfold pipe --policy fanfold < requests.jsonl"#;

const REPLAY_HELP: &str = "\
No model is called: before each recorded reply the policy makes the view that
would have been sent, and the reply itself tells what it needed of it.

Files are told apart by what is in them: one record {\"id\", \"source\", \"messages\",
\"tools\"} per line, a request body or list of messages in any format, a session of
Claude Code or of Codex. Packed ones (.gz) are unpacked, directories are walked.
Name them first: --policy and --window take all that follows.

Examples:
  fanfold replay                                your own sessions, in money
  fanfold replay runs.jsonl.gz --policy all --window 16k 32k
  fanfold replay runs/ --without-aside --by-source --picture runs.svg";

/// The conversation and how it is folded.
#[derive(Debug, Args)]
pub(crate) struct FoldFlags {
    /// The model's window in tokens: 32000, 32k, 1m
    #[arg(short, long, value_name = "TOKENS")]
    window: Option<Size>,
    /// What of the window is kept for the answer [default: a quarter, at most 8192]
    #[arg(long, value_name = "TOKENS")]
    reserve: Option<Size>,
    /// The model, which gives window and counter [default: what the request names]
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// Models that may take over, with commas between them: the smallest window of all counts
    #[arg(long, value_name = "NAMES")]
    fallback: Option<Chain>,
    /// How it is folded [default: fanfold]
    #[arg(short, long, value_name = "NAME", value_parser = Policy::NAMES)]
    policy: Option<String>,
    /// A YAML file with a `compaction:` block; chooses the policy `rules`
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// From when on it is folded
    #[arg(long, value_name = "NAME", value_parser = Strategy::NAMES)]
    strategy: Option<String>,
    /// What it is folded for: cost (when that pays), window (only when it no longer fits)
    #[arg(long, value_name = "NAME", value_parser = Cadence::NAMES, hide_possible_values = true)]
    cadence: Option<String>,
    /// A topic of which more is kept
    #[arg(long, value_name = "TOPIC")]
    focus: Option<String>,
    /// The format of the conversation [default: recognised]
    #[arg(long, value_name = "NAME", value_parser = FORMATS)]
    format: Option<String>,
    /// A tokenizer.json to count with
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// When people's words may be shortened: last_resort, never
    #[arg(long, value_name = "WHEN", hide_possible_values = true)]
    user_text: Option<UserText>,
    /// Let what the agent has seen and done ride at the end: files, verdicts, errors
    #[arg(long)]
    working_context: bool,
    /// Bring a few lines of something folded back when a message mentions it
    #[arg(long)]
    need: bool,
}

/// The names of the formats, as `Format` prints them.
const FORMATS: [&str; 5] = ["chat", "responses", "anthropic", "sharegpt", "hermes"];

#[derive(Debug, Args)]
pub(crate) struct FoldArgs {
    /// The conversation; `.gz` is unpacked [default: - is stdin; with --session: what is kept]
    pub(crate) file: Option<PathBuf>,
    /// Keep it in this session, and go on with its folds; `new` makes one
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) fold: FoldFlags,
    /// Have a summary of what is old written by the model of [summary], and fold that now
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) summarise: bool,
    /// A message that must stay as it is, counted from 0; repeatable
    #[arg(long, value_name = "N")]
    pub(crate) pin: Vec<u32>,
    /// Fold now, even if nothing demands it
    #[arg(long)]
    pub(crate) now: bool,
    /// Tell on stderr what each fold did and why
    #[arg(long)]
    pub(crate) explain: bool,
    /// Write what each fold did, and what became of a summary, as JSON; `-` is stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write and keep nothing; show before and after on stderr (a --receipt only goes to `-` then)
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Where to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Let --output replace the conversation itself
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// As JSON: the sizes, what each fold did, and what is sent as `body`
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RecallArgs {
    /// The conversation as it was before it was folded; `-` is stdin; none with --session
    #[arg(value_name = "FILE")]
    pub(crate) first: String,
    /// The handle, as it stands in the folded conversation
    #[arg(required_unless_present = "session")]
    pub(crate) handle: Option<Handle>,
    /// The session that it was folded in
    #[arg(long, value_name = "ID", conflicts_with = "handle")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// Only these lines, counted from 1: 40, 1-40, 40-
    #[arg(long, value_name = "A-B", conflicts_with = "search")]
    pub(crate) lines: Option<String>,
    /// Only lines with this text, in any case
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// How many lines around each found one
    #[arg(long, value_name = "N", default_value_t = 0, requires = "search")]
    pub(crate) around: usize,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fold: FoldFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The conversation; `-` is stdin
    #[arg(default_value = "-", conflicts_with = "session")]
    pub(crate) file: PathBuf,
    /// A session that is kept, instead of a file
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    /// As the model would see it
    #[arg(long)]
    pub(crate) folded: bool,
    /// Tell on stderr what each fold did and why
    #[arg(long, requires = "folded")]
    pub(crate) explain: bool,
    /// As JSON: the text, and how many tokens it has
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fold: FoldFlags,
}

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The conversation; `-` is stdin
    #[arg(default_value = "-", conflicts_with = "session")]
    pub(crate) file: PathBuf,
    /// A session that is kept, instead of a file
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) what: InspectWhat,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fold: FoldFlags,
}

/// What to tell; the budget if nothing is named.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct InspectWhat {
    /// Window, room, trigger, and how full it is
    #[arg(long)]
    pub(crate) budget: bool,
    /// Every fold: what went in and what came out
    #[arg(long)]
    pub(crate) ledger: bool,
    /// The working context: files seen and changed, verdicts, errors
    #[arg(long)]
    pub(crate) context: bool,
    /// What folding does: tokens saved per fold, what folds leave, folds per 100 turns, summaries
    #[arg(long)]
    pub(crate) metrics: bool,
    /// The requests of the session
    #[arg(long, requires = "session")]
    pub(crate) requests: bool,
    /// The bytes of a request of the session, made again, counted from 1
    #[arg(long, value_name = "N", requires = "session")]
    pub(crate) request: Option<usize>,
}

#[derive(Debug, Args)]
pub(crate) struct PipeArgs {
    #[command(flatten)]
    pub(crate) fold: FoldFlags,
    /// Every request's messages are new ones
    #[arg(long)]
    pub(crate) incremental: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Files or directories of recorded conversations; without any, your own sessions
    pub(crate) paths: Vec<PathBuf>,
    /// Your own sessions, too: those of Claude Code and Codex
    #[arg(long)]
    pub(crate) sessions: bool,
    /// Policies, or `all` [default: fanfold]
    #[arg(short, long, value_name = "NAME", num_args = 1.., value_delimiter = ',')]
    pub(crate) policy: Vec<String>,
    /// Windows in tokens [default: 16k; for sessions 32k 64k 128k 200k]
    #[arg(short, long, value_name = "TOKENS", num_args = 1.., value_delimiter = ',')]
    pub(crate) window: Vec<Size>,
    /// What it is folded for: cost (when that pays), window (only when it no longer fits)
    #[arg(long, value_name = "NAME", value_parser = Cadence::NAMES, hide_possible_values = true)]
    pub(crate) cadence: Option<String>,
    /// Bring a few lines of something folded back when a message mentions it
    #[arg(long)]
    pub(crate) need: bool,
    /// Use a conversation at a window if it is so many times as long [default: 1.5; for sessions 0]
    #[arg(long, value_name = "RATIO")]
    pub(crate) min_ratio: Option<f64>,
    /// Only conversations of so many tokens
    #[arg(long, value_name = "TOKENS")]
    pub(crate) least: Option<Size>,
    /// At most so many conversations of each file, chosen by a hash of their ids
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<usize>,
    /// Only the fifth of the conversations that is kept aside from tuning
    #[arg(long)]
    pub(crate) only_aside: bool,
    /// All but that fifth
    #[arg(long, conflicts_with = "only_aside")]
    pub(crate) without_aside: bool,
    /// Leave one mechanism of the policies out, to see what it adds
    #[arg(long, value_name = "MECHANISM", hide = true)]
    pub(crate) without: Option<String>,
    /// A list of texts that models know anyway, one per line
    #[arg(long, value_name = "FILE")]
    pub(crate) known: Option<PathBuf>,
    /// What all are charged at: a row of `fanfold prices` [default: by the model of each]
    #[arg(long, value_name = "NAME")]
    pub(crate) prices: Option<String>,
    /// How many conversations at once [default: one for each core]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Tables for each source, too
    #[arg(long)]
    pub(crate) by_source: bool,
    /// Each fold with what it won and what it cost
    #[arg(long)]
    pub(crate) receipts: bool,
    /// All figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw recall against tokens and cost, a panel for each source
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) picture: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct PricesArgs {
    /// A model: which row holds for it, and why
    pub(crate) model: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a proxy answers if nothing else is said.
const USUAL_PROXY: &str = "http://127.0.0.1:7744";

const TOP_HELP: &str = "\
Keys: q quits, the arrows choose a session, enter shows all of it, s sorts by
activity, money saved, how full the window is, or misses.

VIEW IN WINDOW shows what was sent last against the model's window, and behind it
what is folded away; `!` stands behind it from 85 % of the room on. AWAY is what folds took out, each token once. SAVED is what
the requests would have cost as they came less what they cost; below zero where
folding cost more. MISSES are calls that were made again for a fold.

Example: fanfold top --once | head";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// Where the proxy listens
    #[arg(long, value_name = "URL", env = "FANFOLD_PROXY", default_value = USUAL_PROXY)]
    pub(crate) url: String,
    /// The proxy's token, where it wants one
    #[arg(long, value_name = "TOKEN", env = "FANFOLD_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
    /// Print a table once and end; so it is where there is no terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print the status once, as JSON
    #[arg(long)]
    pub(crate) json: bool,
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

    /// What the flags set.
    pub(crate) fn options(&self) -> Options {
        let fold = match &self.command {
            Command::Fold(args) => Some(&args.fold),
            Command::Recall(args) => Some(&args.fold),
            Command::Show(args) => Some(&args.fold),
            Command::Inspect(args) => Some(&args.fold),
            Command::Pipe(args) => Some(&args.fold),
            Command::Serve(args) => Some(&args.fold),
            Command::Replay(args) => {
                let (color, cadence, need) = (self.color, args.cadence.clone(), args.need.then_some(true));
                return Options { color, cadence, need, ..Options::default() };
            }
            Command::Models(_)
            | Command::Prices(_)
            | Command::Demo(_)
            | Command::Top(_)
            | Command::Config(_)
            | Command::Sessions(_)
            | Command::Search(_)
            | Command::Mcp(_)
            | Command::Memory(_)
            | Command::Doctor(_)
            | Command::Completions { .. } => None,
        };
        let store = self.store().cloned().unwrap_or_default();
        let options = fold.map(FoldFlags::options).unwrap_or_default();
        Options { color: self.color, store: store.store, profile: store.profile, ..options }
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

impl FoldFlags {
    /// Whether any of them is given.
    pub(crate) fn is_given(&self) -> bool {
        self.options() != Options::default()
    }

    fn options(&self) -> Options {
        Options {
            window: self.window,
            reserve: self.reserve,
            model: self.model.clone(),
            fallback: self.fallback.clone(),
            policy: self.policy.clone(),
            rules: self.rules.clone(),
            strategy: self.strategy.clone(),
            cadence: self.cadence.clone(),
            format: self.format.clone(),
            focus: self.focus.clone(),
            user_text: self.user_text,
            tokenizer: self.tokenizer.clone(),
            working_context: self.working_context.then_some(true),
            need: self.need.then_some(true),
            ..Options::default()
        }
    }
}
