//! Prints the recall of the redactor on generated secrets in each setting, as a table: `setting,secrets,masked,recall`.
//!
//! `cargo run -p fanfold-redact --example recall -- [--seed N] [--cases N] [--missed]`. The default of 5,100 cases covers
//! every kind of secret in every context; `--missed` prints the missed ones to stderr.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "an example prints, and may fail"
)]

#[allow(dead_code, unused_imports, reason = "the harmless texts are not used here")]
#[path = "../tests/it/corpus/mod.rs"]
mod corpus;
#[path = "../tests/it/recall/mod.rs"]
mod recall;

use recall::{COLUMNS, recall_by_setting};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str, default: u64| {
        let at = arguments.iter().position(|argument| argument == flag);
        at.and_then(|at| arguments.get(at + 1)).map_or(default, |n| n.parse().expect("a flag takes a number"))
    };
    let settings = recall_by_setting(number("--seed", 1), number("--cases", 5_100) as usize);
    println!("{COLUMNS}");
    for row in &settings {
        println!("{row}");
        if arguments.iter().any(|argument| argument == "--missed") {
            for ((kind, context), (n, text)) in &row.missed {
                eprintln!("{}: missed {n}: {kind} in {context}: {text}", row.setting);
            }
        }
    }
}
