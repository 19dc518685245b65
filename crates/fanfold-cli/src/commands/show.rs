//! `fanfold show`: prints a conversation as text.

use std::path::PathBuf;

use clap::Args;
use fanfold_core::{print_entries, print_view};
use fanfold_engine::{FoldOptions, FoldedConversation};
use serde_json::json;

use super::conversation::{BodyState, ViewOrFault, open, report_repairs, view};
use super::stored_session;
use crate::failure::Result;
use crate::report::receipt_text;
use crate::settings::{FoldFlags, Options, StoreFlags};
use crate::store;
use crate::terminal::{self, RawFlag, Reporter};

/// Print a conversation as text, message by message
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold show chat.json --folded --window 32k | less")]
pub(crate) struct ShowArgs {
    /// The conversation; `-` is stdin
    #[arg(default_value = "-", conflicts_with = "session")]
    file: PathBuf,
    /// Show a stored session instead of a file
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreFlags,
    /// Show what the model would see
    #[arg(long)]
    folded: bool,
    /// Explain each fold on stderr; implies --folded
    #[arg(long)]
    explain: bool,
    /// Print JSON: the text and its size in tokens
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    raw: RawFlag,
    #[command(flatten)]
    pub(super) fold: FoldFlags,
}

pub(crate) fn run(args: &ShowArgs, options: &Options, reporter: Reporter) -> Result<()> {
    if let Some(session) = &args.session {
        let engine = store::open_read_only(options)?;
        let id = engine.find(session)?.id;
        let mut followed = stored_session::reopen(&engine, &id, &args.fold, options)?;
        return print(&mut followed, args, reporter);
    }
    let is_folded = args.folded || args.explain;
    let reporter = if is_folded { reporter } else { Reporter { is_quiet: true } };
    let mut followed = open(&args.file, options, &FoldOptions::default(), reporter)?;
    print(&mut followed, args, reporter)
}

/// Prints a conversation, or its view.
fn print(followed: &mut FoldedConversation, args: &ShowArgs, reporter: Reporter) -> Result<()> {
    let is_folded = args.folded || args.explain;
    let view = is_folded.then(|| view(followed));
    if let Some(view) = &view {
        let state = BodyState::from_view(view.as_ref());
        report_repairs(followed.conversation.repairs(), state, reporter);
    }
    let session = &*followed.session;
    if args.explain {
        terminal::print_message(receipt_text::session(session));
    }
    let transcript = session.transcript();
    let (tokens, text) = match view.transpose()? {
        Some(ViewOrFault::View(view)) => (view.tokens, print_view(transcript, &view)),
        Some(ViewOrFault::Fault(fault)) => {
            reporter.warn(&format!("{fault}: the conversation would be sent unchanged"));
            (transcript.total(), print_entries(transcript.entries()))
        }
        None => (transcript.total(), print_entries(transcript.entries())),
    };
    if args.json {
        return terminal::print_json(&json!({ "tokens": tokens.0, "text": text }));
    }
    terminal::print_text(text, args.raw.controls())
}
