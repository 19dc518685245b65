//! The flags of what takes one conversation: fold, recall, show, inspect, pipe.

use std::path::{Path, PathBuf};

use clap::Args;
use fanfold_core::Handle;

use crate::settings::{FoldFlags, StoreFlags};

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
    /// Where to write; `-` is stdout [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Let --output replace the conversation itself
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// As JSON: the sizes, what each fold did, and what is sent as `body`
    #[arg(long)]
    pub(crate) json: bool,
}

impl FoldArgs {
    /// The file that is written, if it is one.
    pub(crate) fn file_to_write(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }
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
    /// Tell on stderr what each fold did and why; means --folded
    #[arg(long)]
    pub(crate) explain: bool,
    /// As JSON: the text, and how many tokens it has
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) fold: FoldFlags,
}

impl ShowArgs {
    /// Whether it is shown as the model would see it.
    pub(crate) fn is_folded(&self) -> bool {
        self.folded || self.explain
    }
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

pub(super) const PIPE_HELP: &str = r#"One JSON object per line on stdin, answered by one per line on stdout:
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
