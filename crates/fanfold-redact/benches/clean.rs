//! Measures the speed on text without secrets, and the number of false positives in source code.
//!
//! The text is the source of the crates in cargo's registry, or the files below the given directories:
//! `cargo bench -p fanfold-redact -- DIRECTORY…`. All hits are examples or test data; the first ones are printed for
//! inspection.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and may fail")]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fanfold_redact::find_secrets;

const EXTENSIONS: &[&str] =
    &["rs", "toml", "md", "c", "h", "cpp", "js", "ts", "py", "go", "java", "json", "yml"];
const MAX_SHOWN: usize = 20;

fn main() {
    let arguments: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).map(PathBuf::from).collect();
    let directories = if arguments.is_empty() { vec![registry()] } else { arguments };
    let mut texts = Vec::new();
    directories.iter().for_each(|directory| read_sources(directory, &mut texts));
    let n_bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    if n_bytes == 0 {
        println!("no source files below {directories:?}");
        return;
    }
    black_box(find_secrets("build the automaton before measuring"));
    let mut best = f64::MAX;
    for _ in 0..3 {
        let start = Instant::now();
        texts.iter().for_each(|(_, text)| drop(black_box(find_secrets(text))));
        best = best.min(start.elapsed().as_secs_f64());
    }
    let mut n_found = 0;
    for (file, text) in &texts {
        for secret in find_secrets(text) {
            n_found += 1;
            if n_found <= MAX_SHOWN {
                let value: String = text[secret.range].chars().take(40).collect();
                println!("{:12} {value:40} {}", secret.kind, file.file_name().unwrap().display());
            }
        }
    }
    let megabytes = n_bytes as f64 / 1e6;
    println!(
        "{megabytes:.1} MB of code: {n_found} found, {:.2} per MB; {:.0} MB/s on one core",
        n_found as f64 / megabytes,
        megabytes / best
    );
}

fn registry() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cargo"));
    home.join("registry/src")
}

fn read_sources(directory: &Path, texts: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_code = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| EXTENSIONS.contains(&extension));
        if path.is_dir() {
            read_sources(&path, texts);
        } else if let Some(text) = is_code.then(|| fs::read_to_string(&path).ok()).flatten() {
            texts.push((path, text));
        }
    }
}
