//! The command line of what is kept: sessions, search, doctor.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::settings::StoreFlags;

pub(crate) const SESSIONS_HELP: &str = "\
A session is named by its number in the list, its id, the beginning of its id, or
its title. Nothing that was said is lost by a fold, a rewind, a fork or a rotation.

Examples:
  fanfold fold --session new chat.json --window 32k     keep it, and fold it
  fanfold sessions list
  fanfold sessions fork 1 --at 12 --title \"another way\"
  fanfold sessions import ~/.hermes/state.db";

pub(crate) const SEARCH_HELP: &str = "\
Words are looked for together; \"in quotes\" as they stand, wor* by their beginning,
one OR other, NOT this. Any text is safe to look for; what begins with a dash comes
after two of them: fanfold search -- rm -rf /usr

Without words the last sessions are listed; --session reads one, and with --around
what was said around a message.

Examples:
  fanfold search night run record
  fanfold search --session 3 --around 1204
  fanfold search '\"connection refused\"' --role tool --json";

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List them, the last written to first
    List(ListArgs),
    /// Tell all about one
    Show(OneArgs),
    /// Call it something; without a title its title is taken away
    Title(WordsArgs),
    /// Say what it is for; without a goal its goal is taken away
    Goal(WordsArgs),
    /// Let messages stay as they are in every view
    Pin(PinArgs),
    /// Mark where it stands, or list the marks
    Checkpoint(WordsArgs),
    /// Go to a mark
    Restore(WordsArgs),
    /// Go back; what is left behind can be had again
    Rewind(RewindArgs),
    /// Take the last rewind or restore back
    Redo(OneArgs),
    /// Go another way from any message; prints the new id
    Fork(ForkArgs),
    /// Go on in a new session, and end this one; prints the new id
    Rotate(OneArgs),
    /// Print the id of the session that goes on where this one was
    Resume(OneArgs),
    /// End it; what is sent to it later takes it up again
    End(EndArgs),
    /// Write sessions down
    Export(ExportArgs),
    /// Bring sessions here
    Import(ImportArgs),
    /// Forget sessions
    Delete(DeleteArgs),
    /// Forget sessions that are old
    Prune(PruneArgs),
    /// Tell how large the store is
    Size(SizeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Only of this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// The session: its number in the list, its id or the beginning of it, its title
    pub(crate) session: String,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct WordsArgs {
    /// The session: its number in the list, its id or the beginning of it, its title
    pub(crate) session: String,
    /// The words
    pub(crate) words: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// The session: its number in the list, its id or the beginning of it, its title
    pub(crate) session: String,
    /// Messages, counted from 0
    #[arg(required = true)]
    pub(crate) messages: Vec<u32>,
    /// Let them be folded again
    #[arg(long)]
    pub(crate) off: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The session: its number in the list, its id or the beginning of it, its title
    pub(crate) session: String,
    /// To before the last so many messages of the user's
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "to")]
    pub(crate) turns: u32,
    /// To so many messages
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u32>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The session: its number in the list, its id or the beginning of it, its title
    pub(crate) session: String,
    /// After so many messages [default: all]
    #[arg(long, value_name = "N")]
    pub(crate) at: Option<u32>,
    /// What to call it
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// End the one that it comes from (branched), and take its goal along
    #[arg(long)]
    pub(crate) end_parent: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

/// Why a session ends. A rotation ends one by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum EndWhy {
    /// It is begun anew elsewhere, or done
    Reset,
    /// It goes on in a fork
    Branched,
    /// It worked for another one and is done
    Subagent,
}

#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The session: its number in the list, its id or the beginning of it, its title
    pub(crate) session: String,
    /// Why
    #[arg(long, value_enum, default_value_t = EndWhy::Reset)]
    pub(crate) reason: EndWhy,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

/// How sessions are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// A line for each session, with all that happened to it, exact: `import` reads it
    Jsonl,
    /// A line for each session, as ShareGPT, without secrets
    Sharegpt,
    /// The body as its client would send it now, byte for byte
    Raw,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The sessions: numbers in the list, ids or their beginnings, titles
    #[arg(required_unless_present = "all")]
    pub(crate) sessions: Vec<String>,
    /// Every session
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,
    /// How
    #[arg(short = 'f', long = "format", value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// Leave keys, tokens and passwords in a ShareGPT export; the other formats are exact, and always have them
    #[arg(long)]
    pub(crate) with_secrets: bool,
    /// Where to write [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Exports of ours, request bodies, ShareGPT, a Hermes state database, sessions of Claude Code or Codex
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Where they come from, as `list` shows it [default: by the kind of file]
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The sessions: numbers in the list, ids or their beginnings, titles
    #[arg(required = true)]
    pub(crate) sessions: Vec<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Sessions not written to for so many days
    #[arg(long, value_name = "N", default_value_t = 90)]
    pub(crate) days: u32,
    /// Only of this source
    #[arg(long, value_name = "NAME")]
    pub(crate) source: Option<String>,
    /// Only those that have ended
    #[arg(long)]
    pub(crate) ended: bool,
    /// Tell which, and forget none
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SizeArgs {
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct SearchArgs {
    /// What to look for; without words, the last sessions
    pub(crate) words: Vec<String>,
    /// Read this session; with words, look only there
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// What was said around this message of the session
    #[arg(long, value_name = "NUMBER", requires = "session")]
    pub(crate) around: Option<i64>,
    /// So many messages on either side
    #[arg(long, value_name = "N")]
    pub(crate) window: Option<i64>,
    /// At most so many results, up to 10 [default: 3, of the last sessions 10]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<i64>,
    /// Skip so many results
    #[arg(long, value_name = "N")]
    pub(crate) offset: Option<i64>,
    /// Only these roles, by commas: user, assistant, tool, system, other
    #[arg(long, value_name = "NAMES")]
    pub(crate) role: Option<String>,
    /// Only sessions of these sources, by commas
    #[arg(long, value_name = "NAMES")]
    pub(crate) source: Option<String>,
    /// Said on this day or later: 2026-11-15
    #[arg(long, value_name = "DAY")]
    pub(crate) since: Option<String>,
    /// Said before this day: 2026-11-15
    #[arg(long, value_name = "DAY")]
    pub(crate) before: Option<String>,
    /// The newest first
    #[arg(long, conflicts_with = "oldest")]
    pub(crate) newest: bool,
    /// The oldest first
    #[arg(long)]
    pub(crate) oldest: bool,
    /// The session that asks: what is live in its view is left out
    #[arg(long, value_name = "ID")]
    pub(crate) current: Option<String>,
    /// Look in another profile, which is only read
    #[arg(long, value_name = "NAME")]
    pub(crate) other_profile: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Repair what can be repaired
    #[arg(long)]
    pub(crate) repair: bool,
    /// Make every request again, too, and compare it with what was sent
    #[arg(long)]
    pub(crate) requests: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
}

impl SessionsCommand {
    /// Where its sessions are kept.
    pub(crate) fn store(&self) -> &StoreFlags {
        match self {
            SessionsCommand::List(args) => &args.store,
            SessionsCommand::Show(args)
            | SessionsCommand::Redo(args)
            | SessionsCommand::Rotate(args)
            | SessionsCommand::Resume(args) => &args.store,
            SessionsCommand::Title(args)
            | SessionsCommand::Goal(args)
            | SessionsCommand::Checkpoint(args)
            | SessionsCommand::Restore(args) => &args.store,
            SessionsCommand::End(args) => &args.store,
            SessionsCommand::Pin(args) => &args.store,
            SessionsCommand::Rewind(args) => &args.store,
            SessionsCommand::Fork(args) => &args.store,
            SessionsCommand::Export(args) => &args.store,
            SessionsCommand::Import(args) => &args.store,
            SessionsCommand::Delete(args) => &args.store,
            SessionsCommand::Prune(args) => &args.store,
            SessionsCommand::Size(args) => &args.store,
        }
    }
}
