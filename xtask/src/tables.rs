//! The tables of docs/benchmarks.md that come from replays: contents of views, presets, and the cost of folding.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

use crate::page;
use crate::recordings::{Replays, digits, number, rows};

const PAGE: &str = "docs/benchmarks.md";
const VIEWS: &str = "--window 8k 16k 32k 64k --cadence window --policy";
const COST: &str = "--window 1M --min-ratio 0 --cadence cost";

/// The prices of the cost table: a name in `fanfold prices` and its meaning.
const PRICES: [(&str, &str); 2] =
    [("anthropic", "write 1.25, read 0.10"), ("claude-opus-5-5", "write 1.25, read 0.05")];

/// The share `old` of the yardstick's version of a preset, by window, as its documentation gives it.
const YARDSTICK: [(&str, &str, [f64; 4]); 4] = [
    ("hermes", "hermes-like", [0.431, 0.449, 0.503, 0.489]),
    ("rules", "rule-based", [0.532, 0.543, 0.502, 0.527]),
    ("mask", "masking", [0.574, 0.620, 0.596, 0.592]),
    ("window", "sliding", [0.566, 0.632, 0.654, 0.775]),
];

/// Computes and prints each table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let replays = Replays::new()?;
    let is_written = arguments.iter().any(|argument| argument == "--write");
    let all = replay(&replays, &format!("{VIEWS} all"))?;
    let held_out = replay(&replays, &format!("{VIEWS} fanfold --only-aside"))?;
    let tables = [
        ("views", views(&all, &held_out)),
        ("presets", presets(&all)),
        ("cost", cost(&replays)?),
        ("above", above(&replays)?),
    ];
    for (name, table) in tables {
        page::print(&table);
        if is_written {
            let begin = format!("<!-- begin: cargo xtask tables --write ({name}) -->");
            page::write_table(&crate::tidy::root().join(PAGE), &begin, &table)?;
        }
    }
    Ok(())
}

/// Runs a replay with space-separated arguments.
fn replay(replays: &Replays, arguments: &str) -> anyhow::Result<Value> {
    replays.run(&arguments.split_whitespace().collect::<Vec<_>>())
}

/// Contents of the views of the default policy.
fn views(all: &Value, held_out: &Value) -> String {
    let mut table = String::from(
        "| policy | window | trajectories | over | inval | old | tool-only | lines | recov | a recall | user | bill | rewritten | copied | coined |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (name, replay) in [("`fanfold`", all), ("`fanfold`, held-out fifth", held_out)] {
        for row in rows(replay).iter().filter(|row| row["policy"] == "fanfold") {
            let share = |key: &str| digits(number(row, &format!("/shares/{key}")), 3);
            let _ = writeln!(
                table,
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} M | {} % | {} | {} |",
                window(row),
                row["trajectories"],
                row["sums"]["over"],
                row["sums"]["invalid"],
                share("old"),
                share("tool_only"),
                share("lines"),
                share("old_rec"),
                digits(number(row, "/shares/rec_tokens"), 0),
                share("user"),
                digits(number(row, "/sums/billed_a").map(|billed| billed / 1e6), 2),
                digits(number(row, "/shares/rewrite_rate").map(|share| 100.0 * share), 1),
                share("copied"),
                share("coined"),
            );
        }
    }
    table
}

/// The presets next to the yardstick's versions.
fn presets(all: &Value) -> String {
    let mut table = String::from(
        "| policy | window | over | inval | old | the yardstick's | copied | coined |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for policy in ["hermes", "rules", "mask", "window", "hamr"] {
        let theirs = YARDSTICK.iter().find(|(name, ..)| *name == policy);
        for (i, row) in rows(all).iter().filter(|row| row["policy"] == policy).enumerate() {
            let theirs = theirs.and_then(|(_, name, old)| Some(format!("{name} {:.3}", old.get(i)?)));
            let _ = writeln!(
                table,
                "| `{policy}` | {} | {} | {} | {} | {} | {} | {} |",
                window(row),
                row["sums"]["over"],
                row["sums"]["invalid"],
                digits(number(row, "/shares/old"), 3),
                theirs.unwrap_or_else(|| "–".to_owned()),
                digits(number(row, "/shares/copied"), 3),
                digits(number(row, "/shares/coined"), 3),
            );
        }
    }
    table
}

/// Cost as a share of the cost without folding.
fn cost(replays: &Replays) -> anyhow::Result<String> {
    let mut table = String::from(
        "| prices | conversations | n | cost | with recalls | early | held out: n | cost | with recalls | early |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (price, words) in PRICES {
        for (least, of) in [("0", "all"), ("48k", "of 48k tokens and more"), ("96k", "of 96k and more")] {
            let _ = write!(table, "| {words} | {of} |");
            for part in ["", "--only-aside"] {
                let replay = replay(replays, &format!("{COST} --prices {price} --least {least} {part}"))?;
                for row in rows(&replay) {
                    let share = |key: &str| number(row, &format!("/shares/{key}"));
                    let _ = write!(
                        table,
                        " {} | {} | {} | {} |",
                        row["trajectories"],
                        digits(share("cost"), 2),
                        digits(share("cost_with_recalls"), 2),
                        digits(share("early_old"), 3)
                    );
                }
            }
            table.push('\n');
        }
    }
    Ok(table)
}

/// Conversations that end up more expensive than without folding, for each price list with cache terms of its own.
fn above(replays: &Replays) -> anyhow::Result<String> {
    const MOST: f64 = 1.0;
    let mut table = String::from(
        "| prices | write | read | cost | ends above 1.00 | at most | above 1.00 at some time, at most |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let mut kinds = HashSet::new();
    for price in replays.prices()? {
        let kind =
            ["provider", "write", "read", "lifetime", "match", "cliffs"].map(|key| price[key].to_string());
        let name = price["name"].as_str().unwrap_or_default();
        if !kinds.insert(kind) {
            continue;
        }
        let replay = replay(replays, &format!("{COST} --prices {name}"))?;
        let results = replay["results"].as_array().map_or(&[][..], Vec::as_slice);
        let ends = |result: &Value| {
            let dollars = |key: &str| number(result, &format!("/sums/{key}/dollars"));
            Some(dollars("bill")? / dollars("bill_raw")?).filter(|share| share.is_finite())
        };
        let ends: Vec<f64> = results.iter().filter_map(ends).collect();
        let n_above = ends.iter().filter(|share| **share > MOST).count();
        let worst = results.iter().filter_map(|result| number(result, "/sums/worst")).fold(0.0, f64::max);
        for row in rows(&replay) {
            let _ = writeln!(
                table,
                "| `{name}` | {} | {} | {} | {n_above} of {} | {:.3} | {worst:.3} |",
                price["write"],
                price["read"],
                digits(number(row, "/shares/cost"), 2),
                ends.len(),
                ends.iter().copied().fold(0.0, f64::max),
            );
        }
    }
    Ok(table)
}

/// A window with thousands separators.
fn window(row: &Value) -> String {
    let window = row["window"].as_u64().unwrap_or_default();
    format!("{},{:03}", window / 1000, window % 1000)
}
