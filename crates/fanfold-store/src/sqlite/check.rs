//! Checks a SQLite file: first its structure, then its contents.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row};

use super::executor::SqliteExecutor;
use super::salvage::{self, SalvageReport};
use super::{SqliteStore, error};
use crate::doctor::{self, CheckMode, Finding, RepairStatus};
use crate::search::SqliteIndex;
use crate::store::StoreError;

/// Checks a store. A file too damaged to be read is itself a finding.
pub(super) fn check(store: &SqliteStore, mode: CheckMode) -> Result<Vec<Finding>, StoreError> {
    let problems = file_problems(store, mode)?;
    let mut findings = match mode {
        _ if problems.is_empty() => Vec::new(),
        CheckMode::Report => findings(problems, RepairStatus::Possible),
        CheckMode::Repair => write_new_file(store, problems)?,
    };
    let is_readable_after_repair = findings.iter().any(|finding| finding.repair == RepairStatus::Possible);
    let unread = if is_readable_after_repair { RepairStatus::Possible } else { RepairStatus::Impossible };
    let check =
        |connection: &Connection| doctor::check(&mut SqliteExecutor(connection), &SqliteIndex, mode, unread);
    let contents = match mode {
        CheckMode::Report => store.read(check),
        CheckMode::Repair => store.write(check),
    };
    match contents {
        Ok(found) => findings.extend(found),
        Err(StoreError::Corrupt(text)) => findings.push(file_finding(text, unread)),
        // An unreadable header, which is among the findings, has many errors.
        Err(_) if is_readable_after_repair => {}
        Err(error) => return Err(error),
    }
    findings.dedup();
    Ok(findings)
}

/// Returns what is wrong with the file, apart from its contents.
fn file_problems(store: &SqliteStore, mode: CheckMode) -> Result<Vec<String>, StoreError> {
    let expected = store.expected_schema()?;
    let problems = |connection: &Connection| {
        let mut problems = integrity_problems(connection)?;
        if schema(connection)? != expected {
            problems.push("its schema is damaged".to_owned());
        }
        Ok(problems)
    };
    let found = match mode {
        CheckMode::Report => store.read(problems),
        CheckMode::Repair => store.write(problems),
    };
    match found {
        Err(StoreError::Corrupt(text)) => Ok(vec![text]),
        Err(error) if is_header_error(&error) && salvage::readable_schema(store.path())? == expected => {
            Ok(vec!["its header is damaged".to_owned()])
        }
        problems => problems,
    }
}

/// Returns whether an error may be the result of a damaged header, although it also has other causes.
fn is_header_error(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::ForeignDatabase
            | StoreError::TooNew { .. }
            | StoreError::TooOld { .. }
            | StoreError::Other(_)
    )
}

/// Returns the names and definitions of all tables and indexes.
pub(super) fn schema(connection: &Connection) -> Result<BTreeSet<(String, String)>, StoreError> {
    let text = "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL";
    let mut statement = connection.prepare(text).map_err(error::convert)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(error::convert)?;
    rows.collect::<Result<_, _>>().map_err(error::convert)
}

/// Replaces the file by a new one with everything that is readable.
fn write_new_file(store: &SqliteStore, problems: Vec<String>) -> Result<Vec<Finding>, StoreError> {
    Ok(match store.with_exclusive_file(salvage::salvage) {
        Ok(SalvageReport { backup, losses }) => {
            let text = format!(
                "written anew with everything that was readable; the old file is {}",
                backup.display()
            );
            let mut done = findings(problems, RepairStatus::Done);
            done.push(file_finding(text, RepairStatus::Done));
            done.extend(findings(losses, RepairStatus::Impossible));
            done
        }
        Err(StoreError::Corrupt(text)) => {
            findings(problems.into_iter().chain([text]).collect(), RepairStatus::Impossible)
        }
        Err(StoreError::Busy { .. }) => {
            let text = "a new file can only be written while no other process has it open: stop the others and try again";
            findings(problems.into_iter().chain([text.to_owned()]).collect(), RepairStatus::Possible)
        }
        Err(error) => return Err(error),
    })
}

fn findings(texts: Vec<String>, repair: RepairStatus) -> Vec<Finding> {
    texts.into_iter().map(|text| file_finding(text, repair)).collect()
}

fn file_finding(text: String, repair: RepairStatus) -> Finding {
    Finding { location: "file".into(), text, repair }
}

/// Runs SQLite's own integrity check.
fn integrity_problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA integrity_check").map_err(error::convert)?;
    // A problem may quote a damaged name.
    let text = |row: &Row<'_>| Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned());
    let rows = statement.query_map([], text).map_err(error::convert)?;
    let problems = rows.collect::<Result<Vec<_>, _>>().map_err(error::convert)?;
    // One row may contain several problems, one per line.
    let lines = problems.iter().flat_map(|problem| problem.lines()).map(str::trim);
    let is_problem = |line: &&str| !line.is_empty() && *line != "ok" && !line.starts_with("***");
    Ok(lines.filter(is_problem).map(str::to_owned).collect())
}
