//! `fanfold fold`: folds a conversation from a file.

mod stored; //    the same into a stored session
mod target; //    the session that a conversation is stored in
mod summarise; // with a summary by a model

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use fanfold_core::{Feedback, FoldRequest, FoldStatus, Notice, Pressure, Tokens};
use fanfold_engine::{FoldOptions, FoldedConversation};
use serde_json::{Value, json};

pub(crate) use self::summarise::SummaryOutcome;
use super::conversation::{BodyState, ViewOrFault, open, report_repairs, view};
use crate::failure::{Failure, Result};
use crate::files::output;
use crate::report::{receipt_json, receipt_text, size_chart};
use crate::settings::{FoldFlags, Options, StoreFlags};
use crate::terminal::{self, Reporter};

/// Fold a conversation so that it fits
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold fold chat.json --window 32k --explain > folded.json")]
pub(crate) struct FoldArgs {
    /// The conversation, optionally gzipped; `-` is stdin [default: stdin; with --session: what is stored]
    file: Option<PathBuf>,
    /// Store it in this session and continue its folds; `new` creates one
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    #[command(flatten)]
    pub(super) store: StoreFlags,
    #[command(flatten)]
    pub(super) fold: FoldFlags,
    /// Have the model of [summary] summarise old messages, and fold them now
    #[arg(long, conflicts_with = "dry_run")]
    summarise: bool,
    /// Never fold this message, counted from 0; repeatable
    #[arg(long, value_name = "N")]
    pin: Vec<u32>,
    /// Fold now, even if it is not necessary
    #[arg(long)]
    now: bool,
    /// Explain each fold on stderr
    #[arg(long)]
    explain: bool,
    /// Write receipts of folds and summaries to a file, as JSON; `-` is stderr
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Show sizes before and after on stderr, and write and store nothing (except `--receipt -`)
    #[arg(long)]
    dry_run: bool,
    /// Output file; `-` is stdout [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Allow --output to overwrite the conversation itself
    #[arg(long, requires = "output")]
    force: bool,
    /// Print JSON: sizes, receipts, and the folded `body`
    #[arg(long)]
    json: bool,
}

impl FoldArgs {
    /// The output file, unless it is stdout.
    fn output_file(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }
}

pub(crate) fn run(args: &FoldArgs, options: &Options, reporter: Reporter) -> Result<()> {
    if let Some(session) = &args.session {
        return stored::run(args, session, options, reporter);
    }
    let file = args.file.clone().unwrap_or_else(|| PathBuf::from("-"));
    check_outputs(args, Some(&file))?;
    let fold_options = FoldOptions { pins: args.pin.clone(), record_sizes: args.dry_run };
    let mut followed = open(&file, options, &fold_options, reporter)?;
    let summary = match args.summarise {
        true => Some(summarise::unstored(&mut followed, options, reporter)?),
        false => None,
    };
    let feedback = if args.now { fold_now(&mut followed) } else { None };
    let view = view(&mut followed);
    report_repairs(followed.conversation.repairs(), BodyState::from_view(view.as_ref()), reporter);
    if args.explain {
        terminal::print_message(receipt_text::session(&*followed.session));
        explain_notices(&followed.session.take_notices());
    }
    if let Some(path) = &args.receipt {
        write_receipts(path, &followed, summary.as_ref())?;
    }
    let body = match view? {
        ViewOrFault::View(view) => {
            if args.dry_run {
                let chart = size_chart::before_and_after(&followed, &view, terminal::width());
                terminal::print_message(chart);
            }
            report_fold(args, &followed, feedback, view.tokens, reporter);
            // A conversation that fits is written unchanged, including whitespace around the JSON.
            match view.is_untouched() {
                true => Cow::Borrowed(followed.conversation.body()),
                false => Cow::Owned(followed.encode(&view)),
            }
        }
        ViewOrFault::Fault(fault) => {
            reporter.warn(&format!(
                "{fault}: the conversation is written unchanged. This is a bug in fanfold; please report it"
            ));
            Cow::Borrowed(followed.conversation.body())
        }
    };
    if args.json {
        let body = (!args.dry_run).then_some(&*body);
        return write_json(args, &receipt_json::folded(&followed, summary.as_ref(), body));
    }
    if args.dry_run {
        return Ok(());
    }
    write(args, &body)
}

/// Folds on request. Returns nothing if no view fits, which the view reports.
fn fold_now(followed: &mut FoldedConversation) -> Option<Feedback> {
    followed.session.fold(&FoldRequest { force: true, ..FoldRequest::default() }).ok()
}

/// Reports the outcome. A request to fold gets an answer even if there was nothing to do.
fn report_fold(
    args: &FoldArgs,
    followed: &FoldedConversation,
    feedback: Option<Feedback>,
    view: Tokens,
    reporter: Reporter,
) {
    let outcome = receipt_text::outcome(&*followed.session, view);
    let nothing_done = feedback.filter(|feedback| feedback.status == FoldStatus::Nothing);
    let note = outcome.note.clone().or(nothing_done.and_then(|feedback| feedback.note));
    let outcome = Feedback { note, ..outcome };
    if args.dry_run || args.explain || args.now || outcome.status != FoldStatus::Nothing {
        reporter.line(outcome.to_string());
    }
    report_shortened(followed, reporter);
    let budget = followed.session.budget();
    reporter.pressure(Pressure::new(view, budget), view, budget);
}

/// Explains what happened besides folds. Pressure is reported on its own.
fn explain_notices(notices: &[Notice]) {
    let notices = notices.iter().filter(|notice| !matches!(notice, Notice::Pressure(_)));
    notices.for_each(|notice| terminal::print_message(receipt_text::notice(notice)));
}

/// Warns that user messages were shortened, counting each message once.
fn report_shortened(followed: &FoldedConversation, reporter: Reporter) {
    let receipts = followed.session.ledger().receipts();
    let shortened: BTreeSet<_> = receipts.iter().flat_map(|receipt| &receipt.user_text).collect();
    let n_shortened = shortened.len();
    if n_shortened == 0 {
        return;
    }
    let messages = terminal::count(n_shortened, "user message");
    let were = if n_shortened == 1 { "was" } else { "were" };
    let policy = followed.session.policy().filter(|policy| policy.folds_users());
    let why = match policy {
        Some(policy) => format!("folded, because the policy `{}` folds old user messages", policy.name),
        None => "shortened, because nothing else fitted".to_owned(),
    };
    reporter.warn(&format!("{messages} {were} {why}; --user-text never forbids it"));
}

/// Writes a text to the output. A dry run writes no file.
fn write(args: &FoldArgs, text: &str) -> Result<()> {
    match args.output_file().filter(|_| !args.dry_run) {
        Some(path) => output::write_file(path, text.as_bytes()),
        None => terminal::print_body(text),
    }
}

fn write_json(args: &FoldArgs, value: &Value) -> Result<()> {
    write(args, &format!("{value:#}\n"))
}

fn write_receipts(
    path: &Path,
    followed: &FoldedConversation,
    summary: Option<&SummaryOutcome>,
) -> Result<()> {
    let mut receipts = receipt_json::receipts(followed.session.ledger());
    if let (Some(all), Some(summary)) = (receipts.as_array_mut(), summary) {
        let at = followed.session.transcript().len();
        all.push(json!({ "at": at, "summary": receipt_json::summary(summary) }));
    }
    if path == Path::new("-") {
        terminal::print_json_message(&receipts);
        return Ok(());
    }
    output::write_file(path, format!("{receipts:#}\n").as_bytes())
}

/// Refuses to overwrite the conversation, which is needed to recall folds, and to write two outputs to one file.
fn check_outputs(args: &FoldArgs, input: Option<&Path>) -> Result<()> {
    let receipt = args.receipt.as_deref().filter(|path| *path != Path::new("-"));
    if let Some(path) = receipt.filter(|_| args.dry_run) {
        let message = format!("--dry-run writes no files, but --receipt names {}", path.display());
        return Err(Failure::new(message, "`--receipt -` prints it on stderr"));
    }
    let is_input = |path: &&Path| input.is_some_and(|input| output::is_input(input, path));
    let same_as_input = |path: &Path, hint| {
        Err(Failure::new(
            format!("{} is the conversation itself", path.display()),
            format!("folds are recalled from the original, so keep it; {hint}"),
        ))
    };
    let output = args.output_file();
    if let Some(path) = output.filter(|_| !args.force).filter(is_input) {
        return same_as_input(path, "--force overwrites it anyway");
    }
    if let Some(path) = receipt.filter(is_input) {
        return same_as_input(path, "write the receipt to another file");
    }
    match receipt.zip(output).filter(|(receipt, output)| output::is_same_file(receipt, output)) {
        None => Ok(()),
        Some((path, _)) => Err(Failure::new(
            format!("--receipt and --output both name {}", path.display()),
            "write the receipt to another file; `--receipt -` prints it on stderr",
        )),
    }
}
