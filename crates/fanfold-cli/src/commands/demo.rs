//! `fanfold demo`: folds an example, shows what happened, and recalls a fold.

use std::fmt::Write as _;

use clap::Args;
use fanfold_core::{Cadence, Engine, Entry, EntryId, Extent, Handle, Item, Original, View, thousands};
use fanfold_engine::{FoldOptions, FoldedConversation, decode};

use super::conversation::{ViewOrFault, view};
use crate::failure::{Result, not_decoded};
use crate::report::{receipt_json, receipt_text, size_chart};
use crate::settings::{Options, Size};
use crate::setup::terms;
use crate::terminal::{self, Reporter, Text, paint, style, text};

/// Fold an example conversation
#[derive(Debug, Args)]
#[command(after_help = "Example: fanfold demo --window 8k")]
pub(crate) struct DemoArgs {
    /// Context window to fold into
    #[arg(short, long, value_name = "TOKENS", default_value = "16k")]
    window: Size,
    /// Print the example conversation itself
    #[arg(long)]
    print: bool,
    /// Print JSON: sizes, receipts, and the folded `body`
    #[arg(long, conflicts_with = "print")]
    json: bool,
}

/// An agent fixes a small invented project. Written by `examples/make_demo.rs`.
const EXAMPLE: &str = include_str!("../../demo/conversation.json");

/// How many lines of the recalled fold are shown.
const MAX_LINES: usize = 6;

pub(crate) fn run(args: &DemoArgs, _: &Options, _: Reporter) -> Result<()> {
    if args.print {
        return terminal::print_body(EXAMPLE);
    }
    let (conversation, changes) =
        decode(EXAMPLE, None).map_err(|error| not_decoded("the example", &error))?;
    // The demo shows how a conversation is made to fit, not when folding saves money.
    let cadence = Some(Cadence::Window.to_string());
    let options = Options { window: Some(args.window), cadence, ..Options::default() };
    let terms = terms::choose(&options, conversation.model())?;
    let fold_options = FoldOptions { record_sizes: true, ..FoldOptions::default() };
    let mut followed = FoldedConversation::from_body(conversation, changes, &terms, &fold_options);
    let view = view(&mut followed)?;
    if args.json {
        let body = match &view {
            ViewOrFault::View(view) => Some(followed.encode(view)),
            ViewOrFault::Fault(_) => None,
        };
        return terminal::print_json(&receipt_json::folded(&followed, None, body.as_deref()));
    }
    let page = match view {
        ViewOrFault::View(view) => page(&followed, &view),
        ViewOrFault::Fault(fault) => Text::from(format!("the view violates an invariant: {fault}\n")),
    };
    terminal::print_page(page)
}

fn page(followed: &FoldedConversation, view: &View) -> Text {
    let session = &*followed.session;
    let width = terminal::width();
    let n_messages = followed.conversation.messages().len();
    let n_steps = session.transcript().entries().iter().filter(|entry| entry.step().is_some()).count();
    let budget = session.budget();
    let mut out = Text::default();
    let _ = writeln!(
        out,
        "An agent fixes a small project in {n_steps} steps: {n_messages} messages, {} tokens.",
        session.transcript().total()
    );
    let _ = writeln!(
        out,
        "The model's window is {} tokens; {} of them are reserved for its reply.\n",
        budget.window(),
        budget.reserve()
    );
    out.push(size_chart::before_and_after(followed, view, width));
    out.push("\n");
    match session.ledger().receipts().last() {
        None => out.push(receipt_text::session(session)),
        Some(receipt) => {
            out.push(receipt_text::fold(session.ledger().receipts().len(), receipt));
            out.push(recall_example(session, view, width));
        }
    }
    let _ = writeln!(out, "\n`fanfold demo --print` prints the example. To fold a conversation of your own:");
    let _ = writeln!(out, "  fanfold fold chat.json --window 32k --explain > folded.json");
    out
}

/// One fold: its stub in the view, and its original.
fn recall_example(session: &dyn Engine, view: &View, width: usize) -> Text {
    let Some((handle, original)) = largest_original(session, view) else { return Text::default() };
    let Ok(content) = session.recall(handle, &Extent::Whole) else { return Text::default() };
    let name = handle.to_string();
    let stub = view.items.iter().filter_map(note_text).flat_map(str::lines).find(|line| line.contains(&name));
    let title = paint(style::BOLD, "a recalled fold");
    let mut out = text!["\n", title, format!(", as printed by `fanfold recall FILE {name}`\n  sent     ")];
    out.push_line(paint(style::RECORD, truncate(stub.unwrap_or_default().trim(), width - 11)));
    for (i, line) in content.lines().take(MAX_LINES).enumerate() {
        let label = if i == 0 { "original" } else { "" };
        out.push(format!("  {label:<8} "));
        out.push_line(paint(style::TAIL, truncate(line, width - 11)));
    }
    let n_more = content.lines().count().saturating_sub(MAX_LINES);
    let is_exact = original.iter().all(|entry| {
        texts(session.transcript().entry(*entry)).into_iter().all(|text| content.contains(text))
    });
    let verdict = if is_exact { "identical byte for byte" } else { "NOT identical: please report this" };
    let _ = writeln!(
        out,
        "           … and {n_more} more lines: {} bytes, {verdict}",
        thousands(content.len() as u64)
    );
    out
}

/// The handle in the view with the largest original of a single step.
fn largest_original(session: &dyn Engine, view: &View) -> Option<(Handle, Vec<EntryId>)> {
    let size = |entries: &[EntryId]| -> u64 {
        entries.iter().map(|entry| session.transcript().tokens(*entry).0).sum()
    };
    let single_step = |handle: &Handle| match session.ledger().original(session.transcript(), *handle)? {
        Original::Entries(entries) if entries.len() == 1 => Some((*handle, entries)),
        _ => None,
    };
    view.handles.iter().filter_map(single_step).max_by_key(|(_, entries)| size(entries))
}

fn note_text(item: &Item) -> Option<&str> {
    match item {
        Item::Note { text, .. } => Some(text),
        Item::Whole(_) | Item::Edited(..) => None,
    }
}

/// Every text of an entry, unchanged.
fn texts(entry: &Entry) -> Vec<&str> {
    let bodies = match entry {
        Entry::Prompt(prompt) => vec![&prompt.body],
        Entry::Step(step) => {
            let results = step.calls.iter().filter_map(|call| call.result.as_ref());
            let arguments = step.calls.iter().map(|call| &call.arguments);
            let texts = [&step.reasoning, &step.text].into_iter();
            texts.chain(arguments).chain(results.map(|outcome| &outcome.body)).collect()
        }
    };
    bodies.into_iter().filter(|body| !body.is_empty()).map(|body| &**body.original()).collect()
}

/// Truncates a line to a width.
fn truncate(line: &str, width: usize) -> String {
    let line = line.replace('\t', "  ");
    if line.chars().count() <= width {
        return line;
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
