//! Every fold of a session: receipts, folded parts, segments and summaries.

use std::fmt::Write as _;

use fanfold_core::{Engine, Ledger};
use serde_json::{Value, json};

use crate::report::{receipt_json, receipt_text};
use crate::terminal::{Text, paint, style, text};

pub(super) fn page(session: &dyn Engine) -> Text {
    let ledger = session.ledger();
    if ledger.receipts().is_empty() {
        return receipt_text::session(session);
    }
    let mut page = Text::default();
    for (i, receipt) in ledger.receipts().iter().enumerate() {
        page.push(receipt_text::fold(i + 1, receipt));
        for left in &receipt.folded {
            let part = receipt_text::folded_part(left.target);
            let (pass, before, after) = (left.pass, left.before, left.after);
            page.push(text!["    ", paint(style::HANDLE, left.handle)]);
            let _ = writeln!(page, "  {part:<26} {pass:<12} {before:>9} → {after}");
        }
    }
    if ledger.live_segments().next().is_some() {
        page.push_line(paint(style::BOLD, "segments in the view"));
    }
    for segment in ledger.live_segments() {
        let (first, last) = segment.span();
        let (n_entries, tier, tokens) = (segment.entries.len(), segment.tier, segment.tokens());
        page.push(text!["    ", paint(style::HANDLE, segment.handle)]);
        let _ = writeln!(
            page,
            "  entries {}–{}, {n_entries} of them, tier {tier}, {tokens} tokens",
            first.0, last.0
        );
    }
    summaries_page(&mut page, ledger);
    let (transcript, view) = (session.transcript().total(), session.status().tokens);
    let _ = writeln!(page, "transcript {transcript} tokens, view {view}");
    page
}

/// The summaries by models, and when each entered and left the view.
fn summaries_page(page: &mut Text, ledger: &Ledger) {
    if ledger.summaries().next().is_some() {
        page.push_line(paint(style::BOLD, "summaries by a model"));
    }
    for (i, summary) in ledger.summaries().enumerate() {
        let day = if summary.day.is_empty() { String::new() } else { format!(", {}", summary.day) };
        let _ = write!(page, "    {}  up to entry {}{day}", i + 1, summary.upto.0);
        let _ = match ledger.summary_in_view().filter(|placed| placed.number == i) {
            Some(placed) => {
                writeln!(page, ", {} tokens, in the view after entry {}", placed.tokens, placed.after.0)
            }
            None => writeln!(page, ", not in the view"),
        };
    }
    for placing in ledger.summary_changes() {
        let change = match (placing.removed, placing.added) {
            (Some(left), Some(came)) if left == came => format!("{} moved", came + 1),
            (Some(left), Some(came)) => format!("{} replaced {}", came + 1, left + 1),
            (None, Some(came)) => format!("{} entered the view", came + 1),
            (Some(left), None) => format!("{} left the view, because there was no room", left + 1),
            (None, None) => continue,
        };
        let (at, rewritten) = (placing.at, placing.rewritten);
        let _ = writeln!(page, "    at entry {at}: {change}, rewrote {rewritten} tokens");
    }
}

pub(super) fn json(ledger: &Ledger) -> Value {
    let folds: Value = ledger
        .folds()
        .iter()
        .map(|fold| {
            json!({
                "place": receipt_json::location(fold.place),
                "pass": fold.pass,
                "handle": fold.handle.to_string(),
                "tokens": fold.tokens.0,
                "stub": &*fold.stub,
            })
        })
        .collect();
    let live: Vec<_> = ledger.live_segments().map(|segment| segment.handle).collect();
    let segments: Value = ledger
        .segments()
        .iter()
        .map(|segment| {
            json!({
                "handle": segment.handle.to_string(),
                "entries": segment.entries.iter().map(|entry| entry.0).collect::<Vec<_>>(),
                "tier": segment.tier,
                "tokens": segment.tokens().0,
                "in_view": live.contains(&segment.handle),
            })
        })
        .collect();
    json!({
        "receipts": receipt_json::receipts(ledger),
        "folds": folds,
        "segments": segments,
        "summaries": summaries_json(ledger),
    })
}

fn summaries_json(ledger: &Ledger) -> Value {
    let placed = ledger.summary_in_view();
    let one = |(i, summary): (usize, &fanfold_core::Summary)| {
        let placed = placed.filter(|placed| placed.number == i);
        json!({
            "upto": summary.upto.0,
            "day": summary.day,
            "text": &*summary.text,
            "in_view": placed.is_some(),
            "behind": placed.map(|placed| placed.after.0),
            "tokens": placed.map(|placed| placed.tokens.0),
        })
    };
    ledger.summaries().enumerate().map(one).collect()
}
