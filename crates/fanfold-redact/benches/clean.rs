//! How fast clean text is looked through, and how often something is found in code that holds no secrets.
//!
//! The text is the source of the crates that cargo has unpacked on this machine, or what is below the directories
//! given: `cargo bench -p fanfold-redact -- DIRECTORY…`. What is found there are examples and vectors of tests; each
//! is shown, so that a person can judge it.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints, and may fail")]

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use fanfold_redact::find_secrets;

const ENDS: &[&str] = &["rs", "toml", "md", "c", "h", "cpp", "js", "ts", "py", "go", "java", "json", "yml"];
const MOST_SHOWN: usize = 20;

fn main() {
    let given: Vec<PathBuf> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).map(PathBuf::from).collect();
    let directories = if given.is_empty() { vec![registry()] } else { given };
    let mut texts = Vec::new();
    directories.iter().for_each(|directory| read(directory, &mut texts));
    let n_bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
    if n_bytes == 0 {
        println!("no source below {directories:?}: nothing was measured");
        return;
    }
    black_box(find_secrets("the automaton is built before the clock runs"));
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
            if n_found <= MOST_SHOWN {
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

fn read(directory: &Path, texts: &mut Vec<(PathBuf, String)>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let is_code = path.extension().and_then(|end| end.to_str()).is_some_and(|end| ENDS.contains(&end));
        if path.is_dir() {
            read(&path, texts);
        } else if let Some(text) = is_code.then(|| fs::read_to_string(&path).ok()).flatten() {
            texts.push((path, text));
        }
    }
}
