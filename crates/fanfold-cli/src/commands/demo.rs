//! `fanfold demo`: folds an example, shows what happened, and opens a fold again.

use std::fmt::Write as _;

use fanfold_core::{Cadence, Engine, Entry, EntryId, Extent, Handle, Item, Original, View, thousands};
use fanfold_engine::{Followed, Wishes, decode};

use super::{Viewed, view};
use crate::choose::{self, Asked};
use crate::failure::not_decoded;
use crate::flags::DemoArgs;
use crate::settings::Options;
use crate::terminal::{self, paint, style};
use crate::{explain, picture, report_json};

/// An agent mends a small invented project. `examples/make_demo.rs` writes it.
const EXAMPLE: &str = include_str!("../../demo/conversation.json");

/// How much of an opened fold is shown.
const LINES_SHOWN: usize = 6;

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    if args.print {
        return terminal::data(EXAMPLE);
    }
    let (conversation, changes) =
        decode(EXAMPLE, None).map_err(|error| not_decoded("the example", &error))?;
    // It shows how a conversation is made to fit, not when that pays.
    let cadence = Some(Cadence::Window.to_string());
    let options = Options { window: Some(args.window), cadence, ..Options::default() };
    let terms = choose::terms(&options, Asked { model: conversation.model() })?;
    let wishes = Wishes { has_course: true, ..Wishes::default() };
    let mut followed = Followed::body(conversation, changes, &terms, &wishes);
    if args.json {
        let viewed = view(&mut followed)?;
        let body = match &viewed {
            Viewed::View(view) => Some(followed.encode(view)),
            Viewed::Fault(_) => None,
        };
        return terminal::data(&format!("{:#}\n", report_json::folded(&followed, None, body.as_deref())));
    }
    let page = match view(&mut followed)? {
        Viewed::View(view) => page(&followed, &view),
        Viewed::Fault(fault) => format!("the view broke a promise: {fault}\n"),
    };
    terminal::page(&page)
}

fn page(followed: &Followed, view: &View) -> String {
    let session = &*followed.session;
    let width = terminal::width();
    let n_messages = followed.conversation.messages().len();
    let n_steps = session.transcript().entries().iter().filter(|entry| entry.step().is_some()).count();
    let budget = session.budget();
    let mut out = String::new();
    let _ = writeln!(
        out,
        "An agent mends a small project in {n_steps} steps: {n_messages} messages, {} tokens.",
        session.transcript().total()
    );
    let _ = writeln!(
        out,
        "The model's window is {} tokens; {} of them are kept for its answer.\n",
        budget.window(),
        budget.reserve()
    );
    out.push_str(&picture::before_and_after(followed, view, width));
    out.push('\n');
    match session.ledger().receipts().last() {
        None => out.push_str(&explain::session(session)),
        Some(receipt) => {
            out.push_str(&explain::fold(session.ledger().receipts().len(), receipt));
            out.push_str(&opened(session, view, width));
        }
    }
    let _ = writeln!(out, "\nThe example is `fanfold demo --print`. With a conversation of your own:");
    let _ = writeln!(out, "  fanfold fold chat.json --window 32k --explain > folded.json");
    out
}

/// One fold, as it stands in the view and as it was.
fn opened(session: &dyn Engine, view: &View, width: usize) -> String {
    let Some((handle, original)) = worth_opening(session, view) else { return String::new() };
    let Ok(content) = session.recall(handle, &Extent::Whole) else { return String::new() };
    let name = handle.to_string();
    let stub = view.items.iter().filter_map(words).flat_map(str::lines).find(|line| line.contains(&name));
    let mut out = String::new();
    let title = paint(style::BOLD, "a fold opens again");
    let _ = writeln!(out, "\n{title}, as `fanfold recall FILE {name}` does");
    let _ = writeln!(
        out,
        "  sent     {}",
        paint(style::DIGEST, cut(stub.unwrap_or_default().trim(), width - 11))
    );
    for (i, line) in content.lines().take(LINES_SHOWN).enumerate() {
        let label = if i == 0 { "opened" } else { "" };
        let _ = writeln!(out, "  {label:<8} {}", paint(style::TAIL, cut(line, width - 11)));
    }
    let n_more = content.lines().count().saturating_sub(LINES_SHOWN);
    let is_exact = original.iter().all(|entry| {
        texts(session.transcript().entry(*entry)).into_iter().all(|text| content.contains(text))
    });
    let verdict = if is_exact { "byte for byte what it was" } else { "NOT what it was: please report this" };
    let _ = writeln!(
        out,
        "           … and {n_more} lines more: {} bytes, {verdict}",
        thousands(content.len() as u64)
    );
    out
}

/// The handle in the view that opens to the most text of one step.
fn worth_opening(session: &dyn Engine, view: &View) -> Option<(Handle, Vec<EntryId>)> {
    let size = |entries: &[EntryId]| -> u64 {
        entries.iter().map(|entry| session.transcript().tokens(*entry).0).sum()
    };
    let opens = |handle: &Handle| match session.ledger().original(*handle)? {
        Original::Entries(entries) if entries.len() == 1 => Some((*handle, entries.clone())),
        _ => None,
    };
    view.handles.iter().filter_map(opens).max_by_key(|(_, entries)| size(entries))
}

fn words(item: &Item) -> Option<&str> {
    match item {
        Item::Note { text, .. } => Some(text),
        Item::Whole(_) | Item::Edited(..) => None,
    }
}

/// Every text of an entry, as it came.
fn texts(entry: &Entry) -> Vec<&str> {
    let bodies = match entry {
        Entry::Prompt(prompt) => vec![&prompt.body],
        Entry::Step(step) => {
            let results = step.calls.iter().filter_map(|call| call.result.as_ref());
            let of_calls = step.calls.iter().map(|call| &call.arguments);
            let said = [&step.reasoning, &step.text].into_iter();
            said.chain(of_calls).chain(results.map(|outcome| &outcome.body)).collect()
        }
    };
    bodies.into_iter().filter(|body| !body.is_empty()).map(|body| &**body.original()).collect()
}

/// A line that is no wider than it may be.
fn cut(line: &str, width: usize) -> String {
    let line = line.replace('\t', "  ");
    if line.chars().count() <= width {
        return line;
    }
    line.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
