//! Attacks the built program from outside and prints one table.
//!
//! Each attack runs `fanfold` in a temporary directory with inputs from a printed seed. All traffic stays on
//! 127.0.0.1, every loop is bounded in number or time, and every started process is killed at the end.

mod table; //     rows of results
mod sandbox; //   the program in a directory of its own
mod http; //      an HTTP client that accepts broken answers
mod provider; //  a model provider that sends any bytes
mod kills; //     processes killed at random times
mod full_disk; // a store on a disk that fills up
mod damage; //    lost pages, truncations, damaged headers, changed bytes
mod load; //      hostile bodies and connections beside a good client
mod faults; //    broken answers of the provider, direct and through the proxy
mod browser; //   requests that a web page can send
mod redaction; // secrets in every setting
mod mutations; // mutated conversations
mod terminal; //  control sequences in conversations

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail, ensure};
use tempfile::TempDir;

use crate::page;
use crate::recordings::build_program;
use table::Row;

const PAGE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin: cargo xtask attack --write -->";
const SEED: u64 = 25;

/// One attack; an error is reported as a failure.
type Attack = fn(&Trial) -> anyhow::Result<Vec<Row>>;

const ATTACKS: [(&str, Attack); 9] = [
    ("kills", kills::run),
    ("full-disk", full_disk::run),
    ("damage", damage::run),
    ("load", load::run),
    ("faults", faults::run),
    ("browser", browser::run),
    ("redaction", redaction::run),
    ("mutations", mutations::run),
    ("terminal", terminal::run),
];

/// The terms of a run.
struct Trial {
    program: PathBuf,
    folder: TempDir,
    seed: u64,
    is_short: bool,
}

impl Trial {
    /// The number of tries in a short run and in a full one.
    fn tries(&self, short: usize, full: usize) -> usize {
        if self.is_short { short } else { full }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Runs the named attacks, or all, and prints the table.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(arguments)?;
    let root = crate::tidy::root();
    let program = match options.program {
        Some(program) => program.canonicalize().with_context(|| program.display().to_string())?,
        None if options.is_short => build_program(&root, &[])?,
        None => build_program(&root, &["--release"])?,
    };
    let folder = tempfile::tempdir().context("no temporary directory")?;
    let trial = Trial { program, folder, seed: options.seed, is_short: options.is_short };
    eprintln!("seed {}, program {}", trial.seed, trial.program.display());
    let mut rows = Vec::new();
    for (name, attack) in ATTACKS {
        let is_chosen = options.names.is_empty() || options.names.iter().any(|chosen| chosen == name);
        if is_chosen {
            rows.extend(run_one(&trial, name, attack));
        }
    }
    let table = table::markdown(&rows);
    if options.is_written {
        page::write_table(&root.join(PAGE), BEGIN, &table)?;
    }
    page::print(&table);
    let n_failed = rows.iter().filter(|row| !row.is_passed()).count();
    ensure!(n_failed == 0, "{n_failed} of {} attacks failed (seed {})", rows.len(), trial.seed);
    Ok(())
}

/// Runs an attack and reports each row on stderr.
fn run_one(trial: &Trial, name: &str, attack: Attack) -> Vec<Row> {
    let started = Instant::now();
    let rows = attack(trial).unwrap_or_else(|error| vec![Row::from_result(name, Err(error))]);
    for row in &rows {
        row.report();
    }
    eprintln!("{name}: {:.0} s", started.elapsed().as_secs_f64());
    rows
}

/// The arguments of the command.
struct Options {
    is_short: bool,
    is_written: bool,
    seed: u64,
    program: Option<PathBuf>,
    names: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Options> {
        let mut options =
            Options { is_short: false, is_written: false, seed: SEED, program: None, names: Vec::new() };
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--short" => options.is_short = true,
                "--write" => options.is_written = true,
                "--seed" => options.seed = value()?.parse().context("--seed is not a number")?,
                "--program" => options.program = Some(PathBuf::from(value()?)),
                name if ATTACKS.iter().any(|(known, _)| *known == name) => {
                    options.names.push(name.to_owned());
                }
                name => {
                    let known: Vec<&str> = ATTACKS.iter().map(|(known, _)| *known).collect();
                    bail!("no attack `{name}`\n\nhint: use {}", known.join(", "))
                }
            }
        }
        Ok(options)
    }
}
