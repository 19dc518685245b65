//! What each mechanism of our policy adds: replays without one of them at a time, as docs/ablation.md.

use std::fmt::Write as _;

use anyhow::Context as _;
use fanfold_core::Policy;
use serde_json::Value;

use crate::along::{both, correlation, followers};
use crate::page;
use crate::replayed::{Replays, digits, number, rows};
use crate::tables::PRICES;

const PAGE: &str = "docs/ablation.md";
const TERMS: [&str; 5] = ["--without-aside", "--window", "8k,16k,32k,64k", "--policy", "fanfold"];

/// How it folds when that pays, with no window in the way.
const COST: &str = "--without-aside --policy fanfold --window 1M --min-ratio 0 --cadence cost --least 48k";

/// Replays without each mechanism and prints the page.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let replays = Replays::new()?;
    let replay = |more: &[&str]| replays.run(&[&TERMS[..], more].concat());
    let whole = replay(&["--cadence", "window"])?;
    let mut runs = vec![("nothing".to_owned(), whole.clone())];
    let of_window = |name: &&str| *name != Policy::OF_COST;
    for mechanism in Policy::fanfold().mechanisms().into_iter().filter(of_window) {
        let run = replay(&["--cadence", "window", "--without", mechanism])?;
        runs.push((mechanism.to_owned(), run));
    }
    runs.push(("nothing, and it folds when that pays, too".to_owned(), replay(&["--cadence", "cost"])?));
    let mut text = text(&runs, &whole);
    text.push_str(&along(&runs, &whole));
    text.push_str(&of_cost(&replays)?);
    if arguments.iter().any(|argument| argument == "--write") {
        std::fs::write(crate::tidy::root().join(PAGE), &text).context(PAGE)?;
    }
    page::say(&text);
    Ok(())
}

/// Whether the measure that knows no atoms moves with the one that does.
fn along(runs: &[(String, Value)], whole: &Value) -> String {
    let mut text = String::from(ALONG);
    for (i, row) in rows(whole).iter().enumerate() {
        let row_of = |(name, run): &'_ (String, Value)| Some((name.clone(), both(rows(run).get(i)?)?));
        let of_window: Vec<(String, (f64, f64))> = runs.iter().filter_map(row_of).collect();
        let named: Vec<(&str, (f64, f64))> =
            of_window.iter().map(|(name, pair)| (name.as_str(), *pair)).collect();
        let pairs: Vec<(f64, f64)> = named.iter().map(|(_, pair)| *pair).collect();
        let (with, against) = followers(both(row).unwrap_or_default(), &named);
        let _ = writeln!(
            text,
            "| {}k | {:.2} | {} | {} | {} |",
            row["window"].as_u64().unwrap_or_default() / 1000,
            correlation(&pairs),
            with.len() + against.len(),
            with.len(),
            against.join(", "),
        );
    }
    text
}

/// What it costs, and what stands in view, where only prices are a reason to fold.
fn of_cost(replays: &Replays) -> anyhow::Result<String> {
    let mut text = String::from(
        "\n## Folded when that pays, conversations of 48k tokens and more\n\n\
         `--window 1M --min-ratio 0 --cadence cost --least 48k`; `cost` as a share of what they cost as they came.\n\n\
         | without | prices | cost | recall |\n| --- | --- | --- | --- |\n",
    );
    for (name, without) in [("nothing", &[][..]), (Policy::OF_COST, &["--without", Policy::OF_COST][..])] {
        for (prices, words) in PRICES {
            let more = ["--prices", prices];
            let run = replays.run(&[&COST.split(' ').collect::<Vec<_>>()[..], &more, without].concat())?;
            for row in rows(&run) {
                let (cost, recall) = (number(row, "/shares/cost"), number(row, "/shares/recall_all"));
                let _ = writeln!(text, "| {name} | {words} | {} | {} |", digits(cost, 3), digits(recall, 3));
            }
        }
    }
    Ok(text)
}

fn text(runs: &[(String, Value)], whole: &Value) -> String {
    let mut text = String::from(HEAD);
    for (i, row) in rows(whole).iter().enumerate() {
        let _ = write!(
            text,
            "\n## Window {}k, {} conversations\n\n\
             | without | over | old | | tool-only | lines | copied | tokens | bill | rewritten |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
            row["window"].as_u64().unwrap_or_default() / 1000,
            row["trajectories"],
        );
        let before = number(row, "/shares/old").unwrap_or_default();
        for (name, run) in runs {
            let Some(row) = rows(run).get(i) else { continue };
            let share = |key: &str| digits(number(row, &format!("/shares/{key}")), 3);
            let change = number(row, "/shares/old").map(|old| old - before);
            let _ = writeln!(
                text,
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {} M | {} % |",
                row["sums"]["over"],
                share("old"),
                change.map_or_else(String::new, |change| format!("{change:+.3}")),
                share("tool_only"),
                share("lines"),
                share("copied"),
                digits(number(row, "/shares/tokens_pressed"), 0),
                digits(number(row, "/sums/billed_a").map(|billed| billed / 1e6), 2),
                digits(number(row, "/shares/rewrite_rate").map(|share| 100.0 * share), 1),
            );
        }
    }
    text
}

const ALONG: &str = "
## Whether a measure without atoms moves along

`copied` and `old` over the rows of each table: how far one follows the other (1 is all the way, 0 not at all), how many rows change `old` by 0.01 or
more, how many of these change `copied` in the same direction, and which do not. What `lines of files` adds are whole lines: `lines` and
`copied` see that, and names that stood elsewhere have to make room for it (at 16k and 64k, too, by less than 0.01 of `old`).

| window | correlation | change `old` | `copied`, too | do not |
| --- | --- | --- | --- | --- |
";

const HEAD: &str = "\
# What each mechanism adds

Written by `cargo xtask ablation --write`: the policy `fanfold` on the recorded conversations that are not kept aside, folded when they
no longer fit, with one mechanism left out at a time (`fanfold replay DIR --without-aside --policy fanfold --window 8k 16k 32k 64k
--cadence window --without NAME`). `over`, `old`, `tool-only`, `lines`, `copied` and `rewritten` as in [the figures](benchmarks.md);
`tokens`: what is sent at a call under pressure; `bill`: tokens, written at 1.25 and read at 0.10.

A name of one word is a pass. The others: `weights`, the scorer's learnt weights, with what there is instead; `each atom once`, an
atom in a chosen line adds nothing in the next; `deeds and failures` and `lines of files` are worth something whatever their atoms;
`first step`, which stays at the first fold; `newest words` of the agent's stay, however old; `segments that stay`: most folds leave them
alone; `large arrivals` give way before what was sent does; `low mark`, to which a fold goes down; `rest`, after two folds in a row that won little;
`lines above`, which are left out of results where they stand in view already, to save something that folds can be paid from.

Some rows change next to nothing, and stay for reasons that these figures do not show:

- The recordings hold no images and no reasoning, and no tool has rules of its own: `media`, `reasoning`, `tool_rules`. A fold does not win little twice in a row: `rest`.
- `overtaken`, `arguments`, `condense` and `one_line` fold in place what may not go into a segment, where the room is still too small: the step with the newest words of the
  agent's, and those with a call of a tool that is never folded. Segments and cut arrivals leave them next to nothing here.
- `dedupe` is for what is read again word for word beside what stays; here such steps go into a segment, which tells each line once.
- `first step`, `newest words` and `deeds and failures` are for who reads the view: where the work began, what the agent said last, what was done and what went wrong
  stand there in words, whatever their names and paths are worth. That costs 0.002 of `old` or so, and what it is good for no figure here counts.
- `squeeze` and `user_text` are there so that views fit.

What added nothing and had no such reason is gone: the pass `level`, and what was tried before that
.
";
