//! Measures counting on files: `cargo run --release --example speed -- FILE...`.
#![allow(clippy::print_stdout, reason = "a measurement is printed")]

use std::time::Instant;

use fanfold_core::Count;
use fanfold_tokens::{cl100k, o200k};

fn main() -> std::io::Result<()> {
    let mut texts = Vec::new();
    for path in std::env::args().skip(1) {
        texts.push(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
    }
    let counters: [(&str, &dyn Count); 2] = [("o200k_base", o200k()), ("cl100k_base", cl100k())];
    for (name, counter) in counters {
        let plain = tiktoken::get_encoding(name).expect("the vocabulary is embedded");
        report(&format!("{name} here "), &texts, |text| counter.count(text).0);
        report(&format!("{name} crate"), &texts, |text| plain.count(text) as u64);
    }
    Ok(())
}

fn report(what: &str, texts: &[String], count: impl Fn(&str) -> u64) {
    let n_bytes: usize = texts.iter().map(String::len).sum();
    let mut rates = Vec::new();
    let mut n_tokens = 0;
    for _ in 0..9 {
        let start = Instant::now();
        n_tokens = texts.iter().map(|text| count(text)).sum::<u64>();
        rates.push(n_bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
    }
    let first = rates[0];
    rates.sort_by(f64::total_cmp);
    println!(
        "{what}: {n_tokens} tokens, {n_bytes} bytes, {first:.0} MB/s at first, then {:.0} [{:.0}..{:.0}]",
        rates[4], rates[0], rates[8]
    );
}
