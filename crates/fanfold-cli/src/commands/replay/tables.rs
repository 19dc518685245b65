//! The results of a replay as tables.

use fanfold_core::thousands;
use fanfold_replay::{Record, ReplayOptions, ReplayOutcome, ReplayRow};

use crate::terminal::{Text, paint, style, text};

/// Tables of recall and of costs, with a row for each policy and window.
pub(super) fn tables(terms: &ReplayOptions, rows: &[ReplayRow]) -> Text {
    text![recall_table(terms, rows), "\n", cost_table(terms, rows)]
}

/// The tables for one source.
pub(super) fn source(source: &str, terms: &ReplayOptions, rows: &[ReplayRow]) -> Text {
    text!["\n", paint(style::BOLD, source), "\n", tables(terms, rows)]
}

/// Formats a table with columns as wide as necessary: the first one left-aligned, the others right-aligned.
fn aligned(head: &[&str], rows: Vec<Vec<String>>) -> Text {
    let width = |i: usize| {
        let cells = rows.iter().map(|row| row[i].chars().count());
        cells.chain([head[i].chars().count()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |cells: &[String]| -> String {
        let cell = |(i, (cell, width)): (usize, (&String, &usize))| match i {
            0 => format!("{cell:<width$}"),
            _ => format!("  {cell:>width$}"),
        };
        cells.iter().zip(&widths).enumerate().map(cell).collect()
    };
    let head: Vec<String> = head.iter().map(|&name| name.to_owned()).collect();
    let mut out = text![paint(style::BOLD, line(&head)), "\n"];
    for row in rows {
        out.push_line(line(&row));
    }
    out
}

/// The columns of the table of recall.
#[rustfmt::skip]
const RECALL_COLUMNS: [&str; 23] = [
    "policy", "window", "runs", "calls", "press", "over", "inval", "tok/call", "peak", "billA/M",
    "billO/M", "rewr%", "recall", "old", "95% int.", "bare", "early", "tool-only", "lines", "recov",
    "suff", "old-suff", "user",
];

fn recall_table(terms: &ReplayOptions, rows: &[ReplayRow]) -> Text {
    let row = |row: &ReplayRow| {
        let (sums, shares) = (&row.sums, &row.shares);
        vec![
            terms.policies[row.policy].name.to_string(),
            row.window.to_string(),
            row.trajectories.to_string(),
            sums.calls.to_string(),
            sums.pressed.calls.to_string(),
            sums.over.to_string(),
            sums.invalid.to_string(),
            shares.tokens_pressed.map_or_else(dash, |tokens| format!("{tokens:.0}")),
            sums.peak.to_string(),
            format!("{:.2}", sums.billed_a / 1e6),
            format!("{:.2}", sums.billed_o / 1e6),
            shares.rewrite_rate.map_or_else(dash, |rate| format!("{:.1}", 100.0 * rate)),
            three(shares.recall),
            three(shares.old),
            shares.old_interval.map_or_else(dash, |(low, high)| format!("[{low:.3},{high:.3}]")),
            three(shares.old_bare),
            three(shares.early_old),
            three(shares.tool_only),
            three(shares.lines),
            three(shares.old_rec),
            three(shares.suff),
            three(shares.old_suff),
            three(shares.user),
        ]
    };
    aligned(&RECALL_COLUMNS, rows.iter().map(row).collect())
}

/// The columns of the table of costs.
#[rustfmt::skip]
const COST_COLUMNS: [&str; 17] = [
    "policy", "window", "folds", "cost", "unfolded", "saved", "saved%", "recalls", "net%", "worst", "breaks",
    "break cost", "repeats", "folded", "recall tok", "recall all", "copied",
];

fn cost_table(terms: &ReplayOptions, rows: &[ReplayRow]) -> Text {
    let row = |row: &ReplayRow| {
        let (sums, shares) = (&row.sums, &row.shares);
        let saved = sums.bill_raw.dollars - sums.bill.dollars;
        vec![
            terms.policies[row.policy].name.to_string(),
            row.window.to_string(),
            sums.folds.to_string(),
            dollars(sums.bill.dollars),
            dollars(sums.bill_raw.dollars),
            dollars(saved),
            shares.cost.map_or_else(dash, |cost| format!("{:.1}", 100.0 * (1.0 - cost))),
            sums.needed_recalls.to_string(),
            shares.cost_with_recalls.map_or_else(dash, |cost| format!("{:.1}", 100.0 * (1.0 - cost))),
            format!("{:.3}", sums.worst),
            sums.rewrites.to_string(),
            dollars(sums.break_dollars),
            sums.repeats.to_string(),
            sums.repeats_folded.to_string(),
            shares.rec_tokens.map_or_else(dash, |tokens| format!("{tokens:.0}")),
            three(shares.recall_all),
            three(shares.copied),
        ]
    };
    aligned(&COST_COLUMNS, rows.iter().map(row).collect())
}

/// The number and cost of the user's sessions, and what the cheapest policy would have saved.
pub(super) fn sessions(terms: &ReplayOptions, records: &[Record], rows: &[ReplayRow]) -> Text {
    let n_messages: usize = records.iter().map(|record| record.messages.len()).sum();
    let reported: f64 = records.iter().map(|record| record.reported.dollars(&terms.price_of(record))).sum();
    let reported = match reported > 0.0 {
        true => format!("; by the providers' counts they cost {}", dollars(reported)),
        false => String::new(),
    };
    let counts = (thousands(records.len() as u64), thousands(n_messages as u64));
    let mut out = Text::from(format!("{} sessions, {} messages{reported}\n", counts.0, counts.1));
    // Models most likely have the largest window. Smaller ones save more and keep less.
    let largest = rows.iter().map(|row| row.window).max();
    let of_largest = rows.iter().filter(|row| Some(row.window) == largest);
    let cheapest = of_largest.min_by(|a, b| a.sums.bill.dollars.total_cmp(&b.sums.bill.dollars));
    if let Some(row) = cheapest {
        let (cost, raw) = (row.sums.bill.dollars, row.sums.bill_raw.dollars);
        let text = match cost < 0.995 * raw {
            true => format!(
                "{} instead of {} with {} at a window of {}: {:.0} % saved",
                dollars(cost),
                dollars(raw),
                terms.policies[row.policy].name,
                thousands(row.window),
                100.0 * (1.0 - cost / raw)
            ),
            false => format!(
                "{} unfolded; at a window of {} no fold would have saved money",
                dollars(raw),
                thousands(row.window)
            ),
        };
        out.push_line(paint(style::BOLD, text));
    }
    out.push("\n");
    out
}

/// Each fold with its savings and its cost.
pub(super) fn receipts(terms: &ReplayOptions, outcomes: &[ReplayOutcome]) -> Text {
    const HEAD: [&str; 10] =
        ["conversation", "policy", "window", "reply", "stage", "before", "after", "won", "rewritten", "cost"];
    let mut rows = Vec::new();
    for outcome in outcomes {
        for fold in &outcome.folds {
            let receipt = &fold.receipt;
            rows.push(vec![
                outcome.id.clone(),
                terms.policies[outcome.policy].name.to_string(),
                outcome.window.to_string(),
                fold.reply.to_string(),
                receipt.stage.to_owned(),
                receipt.before.to_string(),
                receipt.after.to_string(),
                receipt.saved().to_string(),
                receipt.rewritten.to_string(),
                format!("${:.4}", fold.dollars),
            ]);
        }
    }
    text!["\n", aligned(&HEAD, rows)]
}

fn three(share: Option<f64>) -> String {
    share.map_or_else(dash, |share| format!("{share:.3}"))
}

fn dash() -> String {
    "-".to_owned()
}

fn dollars(amount: f64) -> String {
    let sign = if amount < -0.004 { "-" } else { "" };
    format!("{sign}${:.2}", amount.abs())
}
