//! Makes the weights of the scorer again: a logistic regression over recorded conversations, without those kept aside.
//!
//! Each conversation is walked as it grew. Whenever another part of a window has come, each atom that is no longer
//! among the newest is a case, seen through the scorer's own features; it is a positive one if the agent wrote the atom
//! before it came up by itself. Nothing is drawn by chance, so the same recordings give the same weights.

mod cases; //    what the conversations show
mod logistic; // the regression

use std::fmt::Write as _;
use std::fs;

use anyhow::Context as _;
use fanfold_core::study::{N_FEATURES, NAMES, SHOWN, WEIGHTS, WRITTEN};

use crate::{page, replayed};
use cases::{COINED, Cases, Lines};

const FILE: &str = "crates/fanfold-core/src/value/weights.rs";

/// Fits the weights and prints them beside those that are in use.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let root = crate::tidy::root();
    let cases::Found { fitted, aside, lines, lines_aside } = cases::gather(&replayed::files(&root)?)?;
    let weights = logistic::fit(&fitted).map(|weight| (weight * 100.0).round() / 100.0);
    let figures = [("fitted to", &fitted), ("kept aside", &aside)].map(|(name, cases)| {
        let now = logistic::figures(cases, &weights);
        let before = logistic::figures(cases, &WEIGHTS.map(f64::from));
        let (n, positive) = (cases.len(), cases.positive());
        format!(
            "{name}: {n} cases, {:.2} % of them used; log-loss {:.4}, area under the curve {:.4} (before: {:.4}, {:.4})",
            100.0 * positive / n as f64, now.log_loss, now.area, before.log_loss, before.area
        )
    });
    let mut table = String::from("| feature | weight | before |\n| --- | --- | --- |\n");
    for i in 0..N_FEATURES {
        let _ = writeln!(table, "| {} | {:.2} | {:.2} |", NAMES[i], weights[i], WEIGHTS[i]);
    }
    let lines = table_of_lines(&lines, &lines_aside);
    page::say(&format!("{table}\n{}\n\n{lines}", figures.join("\n")));
    if arguments.iter().any(|argument| argument == "--write") {
        fs::write(root.join(FILE), source(&weights, [&fitted, &aside])).context(FILE)?;
    }
    Ok(())
}

/// How much more often lines of files were copied than those that were shown once, beside what is in use.
fn table_of_lines(fitted: &Lines, aside: &Lines) -> String {
    let mut table = String::from(
        "| shown | written before | lines | copied | times | kept aside | in use |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    let once = |lines: &Lines| lines.copied(false, 1).0;
    for is_written in [false, true] {
        for (n_shown, of_shown) in SHOWN.iter().enumerate().skip(1) {
            let (copied, n_lines) = fitted.copied(is_written, n_shown);
            let (times, times_aside) =
                (copied / once(fitted), aside.copied(is_written, n_shown).0 / once(aside));
            let in_use = of_shown * if is_written { WRITTEN } else { 1.0 };
            let more = if n_shown + 1 == SHOWN.len() { " or more" } else { "" };
            let _ = writeln!(
                table,
                "| {n_shown}{more} | {} | {n_lines} | {:.2} % | {times:.1} | {times_aside:.1} | {in_use:.1} |",
                if is_written { "yes" } else { "no" },
                100.0 * copied,
            );
        }
    }
    table
}

/// The file with the weights.
fn source(weights: &[f64; N_FEATURES], [fitted, aside]: [&Cases; 2]) -> String {
    let mut source = format!(
        "//! How much each feature counts, in logarithms of odds. Written by `cargo xtask weights --write`.\n\
         //!\n\
         //! A logistic regression over the recorded conversations that are not kept aside; the use of an atom that the agent\n\
         //! coined counts {COINED}, since what it coined it can coin again.\n\
         //!\n\
         //! | | cases | log-loss | area under the curve |\n\
         //! | --- | --- | --- | --- |\n",
    );
    for (name, cases) in [("fitted to", fitted), ("kept aside", aside)] {
        let figures = logistic::figures(cases, weights);
        let _ = writeln!(
            source,
            "//! | {name} | {} | {:.4} | {:.4} |",
            cases.len(),
            figures.log_loss,
            figures.area
        );
    }
    source.push_str(
        "\nuse super::Feature;\n\n/// By feature.\npub(super) const WEIGHTS: [f32; Feature::COUNT] = [\n",
    );
    for (weight, name) in weights.iter().zip(NAMES) {
        // The sign of nothing is no news.
        let number = format!("{:?},", weight + 0.0);
        let _ = writeln!(source, "    {number:<6} // {name}");
    }
    source.push_str("];\n");
    source
}
