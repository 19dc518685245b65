//! Finds and reads recorded conversations.

use std::path::{Path, PathBuf};

use fanfold_replay::{CommonKnowledge, Record, sample, without_prefixes};
use rayon::prelude::*;

use super::ReplayArgs;
use crate::failure::{Failure, Result, not_read};
use crate::files::input;
use crate::terminal::Reporter;

/// The path of the list of texts that models know anyway, relative to a folder above the data set.
const KNOWN_LIST: &str = "tools/replay/generic_atoms.txt";

/// Reads the conversations, and the texts that models know anyway.
pub(super) fn read(args: &ReplayArgs, reporter: Reporter) -> Result<(Vec<Record>, CommonKnowledge)> {
    let files = find_files(args)?;
    let read_file = |path: &PathBuf| -> Result<Vec<Record>> {
        let is_named = args.paths.contains(path);
        let text = match input::read(path, reporter) {
            Ok(input) => input.text,
            Err(error) if is_named => return Err(error),
            Err(_) => return Ok(Vec::new()),
        };
        let records = fanfold_replay::read(&text, &name_of(path));
        Ok(sample(records, args.max.unwrap_or(usize::MAX)))
    };
    let found: Result<Vec<Vec<Record>>> = files.par_iter().map(read_file).collect();
    let found = found?;
    let n_skipped = found.iter().filter(|records| records.is_empty()).count();
    if n_skipped > 0 {
        reporter.line(format!("skipped {n_skipped} of {} files without a conversation", found.len()));
    }
    let mut records: Vec<Record> = found.into_iter().flatten().collect();
    if args.has_own_sessions() {
        records = without_prefixes(records);
    }
    if records.is_empty() {
        let hint = "`fanfold help replay` lists the formats";
        return Err(Failure::new("no conversation was found", hint));
    }
    records.retain(|record| match (args.only_aside, args.without_aside) {
        (true, _) => record.is_held_out(),
        (_, true) => !record.is_held_out(),
        (false, false) => true,
    });
    Ok((records, known_texts(args)?))
}

fn find_files(args: &ReplayArgs) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in &args.paths {
        if path.is_dir() { walk(path, &mut files) } else { files.push(path.clone()) }
    }
    if args.has_own_sessions() {
        let folders = session_folders();
        folders.iter().for_each(|folder| walk(folder, &mut files));
        if files.is_empty() {
            let searched: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
            let message = format!("there are no sessions in {}", searched.join(" or "));
            return Err(Failure::new(message, "name files or directories of recorded conversations"));
        }
    }
    Ok(files)
}

/// Finds the files below a directory, in the order of their names.
fn walk(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let is_link = path.is_symlink();
        if path.is_dir() && !is_link {
            walk(&path, files);
        } else if path.is_file() && is_recording(&path) {
            files.push(path);
        }
    }
}

fn is_recording(path: &Path) -> bool {
    let name = path.to_string_lossy().to_ascii_lowercase();
    [".jsonl", ".json", ".jsonl.gz", ".json.gz"].iter().any(|end| name.ends_with(end))
}

fn name_of(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let bare = file.strip_suffix(".gz").unwrap_or(&file);
    bare.rsplit_once('.').map_or(bare, |(name, _)| name).to_owned()
}

/// The session folders of agents.
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

fn known_texts(args: &ReplayArgs) -> Result<CommonKnowledge> {
    let found = || args.paths.iter().find_map(|path| list_above(path));
    let Some(path) = args.known.clone().or_else(found) else { return Ok(CommonKnowledge::new()) };
    let list = std::fs::read_to_string(&path).map_err(|error| not_read(&path, &error))?;
    Ok(CommonKnowledge::with_list(&list))
}

/// The list in a directory above a file.
fn list_above(path: &Path) -> Option<PathBuf> {
    let path = std::fs::canonicalize(path).ok()?;
    path.ancestors().map(|directory| directory.join(KNOWN_LIST)).find(|list| list.is_file())
}
