//! The file's own soundness, before what is in it.

use rusqlite::Connection;

use super::executor::SqliteExecutor;
use super::salvage::{self, SalvageReport};
use super::{SqliteStore, error};
use crate::doctor::{self, CheckMode, Finding, RepairStatus};
use crate::search::{self, SqliteIndex};
use crate::store::StoreError;

/// Looks through a store. A file too broken to be read through is itself a finding.
pub(super) fn check(store: &SqliteStore, care: CheckMode) -> Result<Vec<Finding>, StoreError> {
    let problems = corruption_as_problem(store.read(integrity_problems))?;
    let mut findings = match care {
        _ if problems.is_empty() => Vec::new(),
        CheckMode::Report => report_problems(store, problems)?,
        CheckMode::Repair => repair_problems(store, problems)?,
    };
    let can_be_read_later = findings.iter().any(|finding| finding.repair == RepairStatus::Possible);
    let unread = if can_be_read_later { RepairStatus::Possible } else { RepairStatus::Impossible };
    let look =
        |connection: &Connection| doctor::check(&mut SqliteExecutor(connection), &SqliteIndex, care, unread);
    let inside = match care {
        CheckMode::Report => store.read(look),
        CheckMode::Repair => store.write(look),
    };
    match inside {
        Ok(inside) => findings.extend(inside),
        Err(StoreError::Broken(text)) => findings.push(file_finding(text, unread)),
        Err(error) => return Err(error),
    }
    findings.dedup();
    Ok(findings)
}

/// What is wrong with the file. It can be made anew where every row can be read.
fn report_problems(store: &SqliteStore, problems: Vec<String>) -> Result<Vec<Finding>, StoreError> {
    let is_readable = match store.read(salvage::all_rows_readable) {
        Ok(is_readable) => is_readable,
        Err(StoreError::Broken(_)) => false,
        Err(error) => return Err(error),
    };
    let cure = if is_readable { RepairStatus::Possible } else { RepairStatus::Impossible };
    Ok(problems.into_iter().map(|text| file_finding(text, cure)).collect())
}

/// Makes the indexes anew; if that is not enough, the file.
fn repair_problems(store: &SqliteStore, problems: Vec<String>) -> Result<Vec<Finding>, StoreError> {
    let left = corruption_as_problem(store.write(|connection| {
        connection.execute_batch("REINDEX").map_err(error::convert)?;
        // A full text index is a table to SQLite: only we can make it anew.
        search::rebuild(&mut SqliteExecutor(connection), &SqliteIndex)?;
        self::integrity_problems(connection)
    }))?;
    let mut more = Vec::new();
    let mut is_mended = left.is_empty();
    if !is_mended {
        match store.with_exclusive_file(salvage::salvage) {
            Ok(SalvageReport { backup: kept, damaged_tables: torn }) => {
                is_mended = true;
                let text =
                    format!("it is made anew from its rows; what it was is kept as {}", kept.display());
                more.push(file_finding(text, RepairStatus::Done));
                for table in torn {
                    let text = format!("some rows of its table {table} can't be read, and are lost to it");
                    more.push(file_finding(text, RepairStatus::Impossible));
                }
            }
            Err(StoreError::Broken(text)) => more.push(file_finding(text, RepairStatus::Impossible)),
            Err(StoreError::Busy { .. }) => {
                let text =
                    "it can be made anew only while nobody else has it open: stop the others, and try again";
                more.push(file_finding(text.to_owned(), RepairStatus::Possible));
            }
            Err(error) => return Err(error),
        }
    }
    let cure = |text: &String| {
        if is_mended || !left.contains(text) { RepairStatus::Done } else { RepairStatus::Impossible }
    };
    let problems = problems.into_iter().map(|text| {
        let cure = cure(&text);
        file_finding(text, cure)
    });
    Ok(problems.chain(more).collect())
}

fn file_finding(text: String, cure: RepairStatus) -> Finding {
    Finding { location: "file".into(), text, repair: cure }
}

/// What was found. A file that can't even be looked through has that problem.
fn corruption_as_problem(problems: Result<Vec<String>, StoreError>) -> Result<Vec<String>, StoreError> {
    match problems {
        Err(StoreError::Broken(text)) => Ok(vec![text]),
        problems => problems,
    }
}

/// What SQLite finds itself.
fn integrity_problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA integrity_check").map_err(error::convert)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(error::convert)?;
    let problems = rows.collect::<Result<Vec<_>, _>>().map_err(error::convert)?;
    // Several lines of one answer are several problems.
    let lines = problems.iter().flat_map(|problem| problem.lines()).map(str::trim);
    let is_problem = |line: &&str| !line.is_empty() && *line != "ok" && !line.starts_with("***");
    Ok(lines.filter(is_problem).map(str::to_owned).collect())
}
