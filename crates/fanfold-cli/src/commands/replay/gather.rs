//! Finds and reads recorded conversations.

use std::path::{Path, PathBuf};

use fanfold_replay::{Known, Record, sample};
use rayon::prelude::*;

use super::Say;
use crate::failure::{Failure, not_read};
use crate::flags::ReplayArgs;
use crate::input;

/// What was found.
pub(crate) struct Gathered {
    pub(crate) records: Vec<Record>,
    /// What models know anyway.
    pub(crate) known: Known,
}

/// Where, beside a data set, the list of what models know anyway lies.
const KNOWN_LIST: &str = "tools/replay/generic_atoms.txt";

pub(crate) fn records(args: &ReplayArgs, _say: Say) -> anyhow::Result<Gathered> {
    let read = |path: &PathBuf| -> anyhow::Result<Vec<Record>> {
        let input = input::read(path)?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = file.split('.').next().unwrap_or_default();
        let lines: Vec<&str> = input.text.lines().filter(|line| !line.trim().is_empty()).collect();
        let records: Result<Vec<Record>, _> =
            lines.par_iter().map(|line| Record::parse(line, name)).collect();
        let records = records.map_err(|error| {
            Failure::new(format!("{}: {error}", input.name), "give files with one record per line")
        })?;
        Ok(sample(records, args.max.unwrap_or(usize::MAX)))
    };
    let read: anyhow::Result<Vec<Vec<Record>>> = args.paths.par_iter().map(read).collect();
    let mut records: Vec<Record> = read?.into_iter().flatten().collect();
    records.retain(|record| match (args.only_aside, args.without_aside) {
        (true, _) => record.is_aside(),
        (_, true) => !record.is_aside(),
        (false, false) => true,
    });
    Ok(Gathered { records, known: known(args)? })
}

fn known(args: &ReplayArgs) -> anyhow::Result<Known> {
    let given = args.known.clone();
    let beside = || args.paths.iter().find_map(|path| above(path));
    let Some(path) = given.or_else(beside) else { return Ok(Known::new()) };
    let list = std::fs::read_to_string(&path).map_err(|error| not_read(&path, &error))?;
    Ok(Known::with_list(&list))
}

/// The list in a directory above a file.
fn above(path: &Path) -> Option<PathBuf> {
    let path = std::fs::canonicalize(path).ok()?;
    path.ancestors().map(|directory| directory.join(KNOWN_LIST)).find(|list| list.is_file())
}
