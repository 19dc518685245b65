//! Measures counting on files: `cargo run --release --example speed -- FILE...`.
#![allow(clippy::print_stdout, reason = "the measurement is printed")]

use std::time::Instant;

use fanfold_core::Count;
use fanfold_tokens::{cl100k, o200k};

fn main() -> std::io::Result<()> {
    let mut texts = Vec::new();
    for path in std::env::args().skip(1) {
        texts.push(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
    }
    for counter in [o200k(), cl100k()] {
        counter.count("");
        report(counter, &texts);
    }
    Ok(())
}

fn report(counter: &dyn Count, texts: &[String]) {
    let n_bytes: usize = texts.iter().map(String::len).sum();
    let mut rates = Vec::new();
    let mut n_tokens = 0;
    for _ in 0..9 {
        let start = Instant::now();
        n_tokens = texts.iter().map(|text| counter.count(text).0).sum();
        rates.push(n_bytes as f64 / 1e6 / start.elapsed().as_secs_f64());
    }
    let first = rates[0];
    rates.sort_by(f64::total_cmp);
    println!(
        "{}: {n_tokens} tokens, {n_bytes} bytes, {first:.0} MB/s first, then {:.0} [{:.0}..{:.0}]",
        counter.name(),
        rates[4],
        rates[0],
        rates[8]
    );
}
