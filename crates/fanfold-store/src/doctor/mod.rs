//! Looks whether a store holds what it should, and repairs what can be.
//!
//! Every id is recomputed from the messages, so a changed byte is found. What follows from something else (counts, roles,
//! lanes of tips, indexes) is made again; a message that is gone or changed can't be, and is named.

mod chains; //   lanes, and the messages in them
mod sessions; // who points where, and what happened to them
mod blobs; //    blobs and the events that name them
mod index; //    whether every message can be found

use std::fmt;

use crate::database::sql::{Sql, SqlValue};
use crate::search::Index;
use crate::store::StoreError;

/// What is to be done about findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckMode {
    /// Tell them.
    Report,
    /// Repair what can be.
    Repair,
}

/// What can be done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStatus {
    /// It can be repaired.
    Possible,
    /// It was.
    Done,
    /// It can't be.
    Impossible,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: a session, a message, a lane, the file.
    pub location: String,
    /// What is wrong, and what a repair does about it.
    pub text: String,
    /// What can be done.
    pub repair: RepairStatus,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.repair {
            RepairStatus::Possible => " (can be repaired)",
            RepairStatus::Done => " (repaired)",
            RepairStatus::Impossible => " (can't be repaired)",
        };
        write!(f, "{}: {}{end}", self.location, self.text)
    }
}

/// Looks through the tables of a database. `unread` says what can be done about one that can't be read through.
pub(crate) fn check(
    sql: &mut dyn Sql,
    index: &dyn Index,
    mode: CheckMode,
    unread: RepairStatus,
) -> Result<Vec<Finding>, StoreError> {
    let mut examination = Examination { sql, mode, findings: Vec::new() };
    let mut is_broken = false;
    // Sessions before messages: a lane without one still leads to where a tip is set back to.
    for place in [Section::Sessions, Section::Messages, Section::Bytes, Section::Index] {
        let result = match place {
            Section::Sessions => sessions::check(&mut examination),
            Section::Messages => chains::check(&mut examination),
            Section::Bytes => blobs::check(&mut examination),
            Section::Index => index::check(&mut examination, index),
        };
        match result {
            Ok(()) => {}
            // One place that can't be read through leaves the others to be looked at.
            Err(StoreError::Broken(text)) => {
                is_broken = true;
                examination.findings.push(Finding { location: place.name().into(), text, repair: unread });
            }
            // A database may refuse everything after that.
            Err(_) if is_broken => break,
            Err(error) => return Err(error),
        }
    }
    Ok(examination.findings)
}

/// What is looked through, one after the other.
#[derive(Debug, Clone, Copy)]
enum Section {
    Sessions,
    Messages,
    Bytes,
    Index,
}

impl Section {
    fn name(self) -> &'static str {
        match self {
            Section::Sessions => "sessions",
            Section::Messages => "messages",
            Section::Bytes => "bytes",
            Section::Index => "full text index",
        }
    }
}

/// A database being looked through.
struct Examination<'a> {
    sql: &'a mut dyn Sql,
    mode: CheckMode,
    findings: Vec<Finding>,
}

impl Examination<'_> {
    /// Notes something that nothing can be done about.
    fn report_lost(&mut self, place: String, text: String) {
        self.findings.push(Finding { location: place, text, repair: RepairStatus::Impossible });
    }

    /// Notes something that a statement repairs, and runs it if asked to.
    fn repair_with(
        &mut self,
        place: String,
        text: String,
        cure: &str,
        values: &[SqlValue<'_>],
    ) -> Result<(), StoreError> {
        if self.mode == CheckMode::Repair {
            self.sql.execute(cure, values)?;
        }
        self.report_repairable(place, text);
        Ok(())
    }

    /// Notes something that is repaired, if that was asked for.
    fn report_repairable(&mut self, place: String, text: String) {
        let cure = if self.mode == CheckMode::Repair { RepairStatus::Done } else { RepairStatus::Possible };
        self.findings.push(Finding { location: place, text, repair: cure });
    }
}
