//! Finds and reads recorded conversations.

use std::path::{Path, PathBuf};

use fanfold_replay::{CommonKnowledge, Record, read, sample, without_prefixes};
use rayon::prelude::*;

use super::Say;
use crate::failure::{Failure, not_read};
use crate::flags::ReplayArgs;
use crate::input;

/// What was found.
pub(crate) struct Gathered {
    pub(crate) records: Vec<Record>,
    /// What models know anyway.
    pub(crate) known: CommonKnowledge,
}

/// Where, beside a data set, the list of what models know anyway lies.
const KNOWN_LIST: &str = "tools/replay/generic_atoms.txt";

/// Whether a person's own sessions are wanted.
pub(crate) fn is_of_sessions(args: &ReplayArgs) -> bool {
    args.sessions || args.paths.is_empty()
}

pub(crate) fn records(args: &ReplayArgs, say: Say) -> anyhow::Result<Gathered> {
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() { walk(path, &mut files) } else { files.push(path.clone()) }
    }
    if is_of_sessions(args) {
        let folders = session_folders();
        let n_before = files.len();
        folders.iter().for_each(|folder| walk(folder, &mut files));
        if files.len() == n_before && args.paths.is_empty() {
            let looked: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
            return Err(Failure::new(
                format!("there are no sessions in {}", looked.join(" or ")),
                "name files or directories of recorded conversations",
            )
            .into());
        }
    }
    let of_file = |path: &PathBuf| -> anyhow::Result<Vec<Record>> {
        let is_named = args.paths.contains(path);
        let text = match input::read(path) {
            Ok(input) => input.text,
            Err(error) if is_named => return Err(error),
            Err(_) => return Ok(Vec::new()),
        };
        Ok(sample(read(&text, &name_of(path)), args.max.unwrap_or(usize::MAX)))
    };
    let found: anyhow::Result<Vec<Vec<Record>>> = files.par_iter().map(of_file).collect();
    let found = found?;
    let n_skipped = found.iter().filter(|records| records.is_empty()).count();
    if n_skipped > 0 {
        say.note(&format!("{n_skipped} of {} files hold no conversation and were skipped\n", found.len()));
    }
    let mut records: Vec<Record> = found.into_iter().flatten().collect();
    if is_of_sessions(args) {
        records = without_prefixes(records);
    }
    if records.is_empty() {
        let hint = "`fanfold help replay` tells which files can be read";
        return Err(Failure::new("no conversation was found", hint).into());
    }
    records.retain(|record| match (args.only_aside, args.without_aside) {
        (true, _) => record.is_held_out(),
        (_, true) => !record.is_held_out(),
        (false, false) => true,
    });
    Ok(Gathered { records, known: known(args)? })
}

/// The files below a directory, in the order of their names.
fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let is_link = path.is_symlink();
        if path.is_dir() && !is_link {
            walk(&path, files);
        } else if path.is_file() && is_readable(&path) {
            files.push(path);
        }
    }
}

fn is_readable(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    [".jsonl", ".json", ".jsonl.gz", ".json.gz"].iter().any(|end| name.ends_with(end))
}

fn name_of(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let bare = file.strip_suffix(".gz").unwrap_or(&file);
    bare.rsplit_once('.').map_or(bare, |(name, _)| name).to_owned()
}

/// Where agents keep their sessions.
fn session_folders() -> Vec<PathBuf> {
    let home = etcetera::home_dir().unwrap_or_default();
    let folder =
        |variable: &str, usual: &str| match std::env::var_os(variable).filter(|value| !value.is_empty()) {
            Some(set) => PathBuf::from(set),
            None => home.join(usual),
        };
    vec![
        folder("CLAUDE_CONFIG_DIR", ".claude").join("projects"),
        folder("CODEX_HOME", ".codex").join("sessions"),
    ]
}

fn known(args: &ReplayArgs) -> anyhow::Result<CommonKnowledge> {
    let given = args.known.clone();
    let beside = || args.paths.iter().find_map(|path| above(path));
    let Some(path) = given.or_else(beside) else { return Ok(CommonKnowledge::new()) };
    let list = std::fs::read_to_string(&path).map_err(|error| not_read(&path, &error))?;
    Ok(CommonKnowledge::with_list(&list))
}

/// The list in a directory above a file.
fn above(path: &Path) -> Option<PathBuf> {
    let path = std::fs::canonicalize(path).ok()?;
    path.ancestors().map(|directory| directory.join(KNOWN_LIST)).find(|list| list.is_file())
}
