//! Checks a SQLite file: first its structure, then its contents.

use rusqlite::Connection;

use super::executor::SqliteExecutor;
use super::salvage::{self, SalvageReport};
use super::{SqliteStore, error};
use crate::doctor::{self, CheckMode, Finding, RepairStatus};
use crate::search::{self, SqliteIndex};
use crate::store::StoreError;

/// Checks a store. A file too damaged to be read is itself a finding.
pub(super) fn check(store: &SqliteStore, mode: CheckMode) -> Result<Vec<Finding>, StoreError> {
    let problems = corruption_as_problem(store.read(integrity_problems))?;
    let mut findings = match mode {
        _ if problems.is_empty() => Vec::new(),
        CheckMode::Report => report_problems(store, problems)?,
        CheckMode::Repair => repair_problems(store, problems)?,
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
        Err(error) => return Err(error),
    }
    findings.dedup();
    Ok(findings)
}

/// Reports the problems of a file. They are repairable if every row can be read.
fn report_problems(store: &SqliteStore, problems: Vec<String>) -> Result<Vec<Finding>, StoreError> {
    let is_readable = match store.read(salvage::all_rows_readable) {
        Ok(is_readable) => is_readable,
        Err(StoreError::Corrupt(_)) => false,
        Err(error) => return Err(error),
    };
    let repair = if is_readable { RepairStatus::Possible } else { RepairStatus::Impossible };
    Ok(problems.into_iter().map(|text| file_finding(text, repair)).collect())
}

/// Rebuilds the indexes; if that is not enough, rebuilds the file from its rows.
fn repair_problems(store: &SqliteStore, problems: Vec<String>) -> Result<Vec<Finding>, StoreError> {
    let remaining = corruption_as_problem(store.write(|connection| {
        connection.execute_batch("REINDEX").map_err(error::convert)?;
        // REINDEX does not cover the full text index, which consists of ordinary tables.
        search::rebuild(&mut SqliteExecutor(connection), &SqliteIndex)?;
        self::integrity_problems(connection)
    }))?;
    let mut more = Vec::new();
    let mut is_repaired = remaining.is_empty();
    if !is_repaired {
        match store.with_exclusive_file(salvage::salvage) {
            Ok(SalvageReport { backup, damaged_tables }) => {
                is_repaired = true;
                let text = format!("rebuilt from its rows; the old file is {}", backup.display());
                more.push(file_finding(text, RepairStatus::Done));
                for table in damaged_tables {
                    let text = format!("some rows of its table {table} are unreadable and lost");
                    more.push(file_finding(text, RepairStatus::Impossible));
                }
            }
            Err(StoreError::Corrupt(text)) => more.push(file_finding(text, RepairStatus::Impossible)),
            Err(StoreError::Busy { .. }) => {
                let text = "it can only be rebuilt while no other process has it open: stop the others and try again";
                more.push(file_finding(text.to_owned(), RepairStatus::Possible));
            }
            Err(error) => return Err(error),
        }
    }
    let status = |text: &String| {
        if is_repaired || !remaining.contains(text) { RepairStatus::Done } else { RepairStatus::Impossible }
    };
    let problems = problems.into_iter().map(|text| {
        let repair = status(&text);
        file_finding(text, repair)
    });
    Ok(problems.chain(more).collect())
}

fn file_finding(text: String, repair: RepairStatus) -> Finding {
    Finding { location: "file".into(), text, repair }
}

/// Turns the error of an unreadable file into a problem.
fn corruption_as_problem(problems: Result<Vec<String>, StoreError>) -> Result<Vec<String>, StoreError> {
    match problems {
        Err(StoreError::Corrupt(text)) => Ok(vec![text]),
        problems => problems,
    }
}

/// Runs SQLite's own integrity check.
fn integrity_problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA integrity_check").map_err(error::convert)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(error::convert)?;
    let problems = rows.collect::<Result<Vec<_>, _>>().map_err(error::convert)?;
    // One row may contain several problems, one per line.
    let lines = problems.iter().flat_map(|problem| problem.lines()).map(str::trim);
    let is_problem = |line: &&str| !line.is_empty() && *line != "ok" && !line.starts_with("***");
    Ok(lines.filter(is_problem).map(str::to_owned).collect())
}
