//! Runs of `fanfold replay` over the recorded conversations, for the pages that tell figures.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// The program, and the files of conversations.
pub(crate) struct Replays {
    program: PathBuf,
    files: Vec<PathBuf>,
}

impl Replays {
    /// Builds the program as it is released.
    pub(crate) fn new() -> anyhow::Result<Replays> {
        let root = crate::tidy::root();
        let files = files(&root)?;
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&root).args(["build", "--release", "--quiet", "-p", "fanfold-cli"]);
        cargo.args(["--message-format", "json-render-diagnostics"]);
        let built = said(&mut cargo)?;
        let lines = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut programs = lines.filter_map(|line| Some(PathBuf::from(line["executable"].as_str()?)));
        let program = programs.next_back().context("cargo did not tell where the program is")?;
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
        serde_json::from_str(&said(&mut command)?).with_context(|| format!("{command:?} gave no JSON"))
    }

    /// The rows of `fanfold prices`.
    pub(crate) fn prices(&self) -> anyhow::Result<Vec<Value>> {
        let mut command = Command::new(&self.program);
        serde_json::from_str(&said(command.args(["prices", "--json"]))?).context("the prices are no JSON")
    }
}

/// The files of recorded conversations, in order, but for those made to be odd.
pub(crate) fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = root.join("../shared/trajectories");
    let hint = "the recorded conversations lie there; what is made of them stays as it is without";
    let list = fs::read_dir(&folder)
        .with_context(|| format!("{} can't be read\n\nhint: {hint}", folder.display()))?;
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

/// A number of a row by its path; none where there was nothing to count.
pub(crate) fn number(row: &Value, path: &str) -> Option<f64> {
    row.pointer(path)?.as_f64()
}

/// A number with so many digits, or a dash.
pub(crate) fn digits(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "–".to_owned(), |number| format!("{number:.digits$}"))
}

fn said(command: &mut Command) -> anyhow::Result<String> {
    // A person's own settings must not change the figures.
    command.env_remove("FANFOLD_CONFIG").stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("{command:?} could not be started"))?;
    ensure!(output.status.success(), "{command:?} failed");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
