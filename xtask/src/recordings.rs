//! Runs `fanfold replay` over the recorded conversations.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// The program and the files of recorded conversations.
pub(crate) struct Replays {
    program: PathBuf,
    files: Vec<PathBuf>,
}

impl Replays {
    /// Builds the release program.
    pub(crate) fn new() -> anyhow::Result<Replays> {
        let root = crate::tidy::root();
        let files = files(&root)?;
        let program = build_program(&root, &["--release"])?;
        Ok(Replays { program, files })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The figures of a replay as JSON.
    pub(crate) fn run(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let mut command = Command::new(&self.program);
        command.arg("replay").args(&self.files).arg("--json").args(arguments);
        serde_json::from_str(&output_of(&mut command)?)
            .with_context(|| format!("{command:?} printed no JSON"))
    }

    /// The rows of `fanfold prices`.
    pub(crate) fn prices(&self) -> anyhow::Result<Vec<Value>> {
        let mut command = Command::new(&self.program);
        serde_json::from_str(&output_of(command.args(["prices", "--json"]))?)
            .context("`fanfold prices` printed no JSON")
    }
}

/// Builds the program with these flags and returns its path.
pub(crate) fn build_program(root: &Path, flags: &[&str]) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--quiet", "-p", "fanfold-cli"]).args(flags);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let built = output_of(&mut cargo)?;
    let lines = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut programs = lines.filter_map(|line| Some(PathBuf::from(line["executable"].as_str()?)));
    programs.next_back().context("cargo did not print the path of the program")
}

/// The files of recorded conversations in order, without the stress cases.
pub(crate) fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = root.join("../shared/trajectories");
    let hint = "recorded conversations are expected there; without them this command cannot run";
    let list = fs::read_dir(&folder)
        .with_context(|| format!("{} cannot be read\n\nhint: {hint}", folder.display()))?;
    let mut files = Vec::new();
    for file in list {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name.ends_with(".jsonl.gz") && !name.starts_with("stress") {
            files.push(file.path());
        }
    }
    files.sort();
    ensure!(!files.is_empty(), "{} has no recorded conversations\n\nhint: {hint}", folder.display());
    Ok(files)
}

/// The rows of a replay: each policy at each window.
pub(crate) fn rows(replay: &Value) -> &[Value] {
    replay["summary"].as_array().map_or(&[], Vec::as_slice)
}

/// A number of a row by its path, if present.
pub(crate) fn number(row: &Value, path: &str) -> Option<f64> {
    row.pointer(path)?.as_f64()
}

/// A number with the given number of decimals, or a dash.
pub(crate) fn digits(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "–".to_owned(), |number| format!("{number:.digits$}"))
}

fn output_of(command: &mut Command) -> anyhow::Result<String> {
    // User settings must not change the figures.
    command.env_remove("FANFOLD_CONFIG").stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
