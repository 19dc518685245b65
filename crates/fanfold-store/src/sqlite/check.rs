//! The file's own soundness, before what is in it.

use rusqlite::Connection;

use super::run::OnSqlite;
use super::salvage::{self, Salvaged};
use super::{SqliteStore, error};
use crate::doctor::{self, Care, Cure, Finding};
use crate::search::{self, InSqlite};
use crate::store::StoreError;

/// Looks through a store. A file too broken to be read through is itself a finding.
pub(super) fn examine(store: &SqliteStore, care: Care) -> Result<Vec<Finding>, StoreError> {
    let problems = found(store.read(problems))?;
    let mut findings = match care {
        _ if problems.is_empty() => Vec::new(),
        Care::Check => told(store, problems)?,
        Care::Repair => repaired(store, problems)?,
    };
    let can_be_read_later = findings.iter().any(|finding| finding.cure == Cure::Possible);
    let unread = if can_be_read_later { Cure::Possible } else { Cure::None };
    let look = |connection: &Connection| doctor::examine(&mut OnSqlite(connection), &InSqlite, care, unread);
    let inside = match care {
        Care::Check => store.read(look),
        Care::Repair => store.write(look),
    };
    match inside {
        Ok(inside) => findings.extend(inside),
        Err(StoreError::Broken(text)) => findings.push(of_file(text, unread)),
        Err(error) => return Err(error),
    }
    findings.dedup();
    Ok(findings)
}

/// What is wrong with the file. It can be made anew where every row can be read.
fn told(store: &SqliteStore, problems: Vec<String>) -> Result<Vec<Finding>, StoreError> {
    let is_readable = match store.read(salvage::is_readable) {
        Ok(is_readable) => is_readable,
        Err(StoreError::Broken(_)) => false,
        Err(error) => return Err(error),
    };
    let cure = if is_readable { Cure::Possible } else { Cure::None };
    Ok(problems.into_iter().map(|text| of_file(text, cure)).collect())
}

/// Makes the indexes anew; if that is not enough, the file.
fn repaired(store: &SqliteStore, problems: Vec<String>) -> Result<Vec<Finding>, StoreError> {
    let left = found(store.write(|connection| {
        connection.execute_batch("REINDEX").map_err(error::of)?;
        // A full text index is a table to SQLite: only we can make it anew.
        search::rebuild(&mut OnSqlite(connection), &InSqlite)?;
        self::problems(connection)
    }))?;
    let mut more = Vec::new();
    let mut is_mended = left.is_empty();
    if !is_mended {
        match store.alone(salvage::salvage) {
            Ok(Salvaged { kept, torn }) => {
                is_mended = true;
                let text =
                    format!("it is made anew from its rows; what it was is kept as {}", kept.display());
                more.push(of_file(text, Cure::Done));
                for table in torn {
                    let text = format!("some rows of its table {table} can't be read, and are lost to it");
                    more.push(of_file(text, Cure::None));
                }
            }
            Err(StoreError::Broken(text)) => more.push(of_file(text, Cure::None)),
            Err(StoreError::Busy { .. }) => {
                let text =
                    "it can be made anew only while nobody else has it open: stop the others, and try again";
                more.push(of_file(text.to_owned(), Cure::Possible));
            }
            Err(error) => return Err(error),
        }
    }
    let cure = |text: &String| if is_mended || !left.contains(text) { Cure::Done } else { Cure::None };
    let problems = problems.into_iter().map(|text| {
        let cure = cure(&text);
        of_file(text, cure)
    });
    Ok(problems.chain(more).collect())
}

fn of_file(text: String, cure: Cure) -> Finding {
    Finding { place: "file".into(), text, cure }
}

/// What was found. A file that can't even be looked through has that problem.
fn found(problems: Result<Vec<String>, StoreError>) -> Result<Vec<String>, StoreError> {
    match problems {
        Err(StoreError::Broken(text)) => Ok(vec![text]),
        problems => problems,
    }
}

/// What SQLite finds itself.
fn problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA integrity_check").map_err(error::of)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(error::of)?;
    let problems = rows.collect::<Result<Vec<_>, _>>().map_err(error::of)?;
    // Several lines of one answer are several problems.
    let lines = problems.iter().flat_map(|problem| problem.lines()).map(str::trim);
    let is_problem = |line: &&str| !line.is_empty() && *line != "ok" && !line.starts_with("***");
    Ok(lines.filter(is_problem).map(str::to_owned).collect())
}
