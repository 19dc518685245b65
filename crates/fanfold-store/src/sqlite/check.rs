//! The file's own soundness, before what is in it.

use rusqlite::Connection;

use super::run::OnSqlite;
use super::{SqliteStore, error};
use crate::doctor::{self, Care, Cure, Finding};
use crate::search::{self, InSqlite};
use crate::store::StoreError;

/// Looks through a store. A file too broken to be read through is itself a finding.
pub(super) fn examine(store: &SqliteStore, care: Care) -> Result<Vec<Finding>, StoreError> {
    let result = match care {
        Care::Check => store.read(|connection| all(connection, care)),
        Care::Repair => store.write(|connection| all(connection, care)),
    };
    match result {
        Err(StoreError::Broken(text)) => {
            Ok(vec![Finding { place: store.path().display().to_string(), text, cure: Cure::None }])
        }
        result => result,
    }
}

fn all(connection: &Connection, care: Care) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    let problems = problems(connection)?;
    if !problems.is_empty() && care == Care::Repair {
        connection.execute_batch("REINDEX").map_err(error::of)?;
        // A full text index is a table to SQLite: only we can make it anew.
        if problems.iter().any(|problem| is_of_full_text(problem)) {
            search::rebuild(&mut OnSqlite(connection), &InSqlite)?;
        }
    }
    let left =
        if care == Care::Repair && !problems.is_empty() { self::problems(connection)? } else { Vec::new() };
    for text in problems {
        let is_of_an_index = text.contains("index") || is_of_full_text(&text);
        let cure = match care {
            Care::Check if is_of_an_index => Cure::Possible,
            Care::Repair if !left.contains(&text) => Cure::Done,
            _ => Cure::None,
        };
        findings.push(Finding { place: "file".into(), text, cure });
    }
    findings.extend(doctor::examine(&mut OnSqlite(connection), &InSqlite, care)?);
    Ok(findings)
}

/// Whether SQLite says something of a full text index, which it does in several ways.
fn is_of_full_text(problem: &str) -> bool {
    problem.to_lowercase().contains("fts5")
}

/// What SQLite finds itself.
fn problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA integrity_check").map_err(error::of)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(error::of)?;
    let problems = rows.collect::<Result<Vec<_>, _>>().map_err(error::of)?;
    Ok(problems.into_iter().filter(|problem| problem != "ok").collect())
}
