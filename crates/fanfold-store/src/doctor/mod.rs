//! Checks the consistency of a SQL store and repairs it where possible.
//!
//! Every id is recomputed from the messages, which detects any changed byte. Derived data (counts, roles, lineages,
//! lanes of tips, indexes) is recomputed. Missing or changed messages are reported; a repair makes their chains complete.

mod texts; //    texts of sessions and events
mod lanes; //    runs of messages and their branches
mod chains; //   the messages of lanes
mod sessions; // tips, events and roots of sessions
mod blobs; //    blobs and the events that name them
mod index; //    the full text index

use std::fmt;

use crate::database::sql::{Sql, SqlValue};
use crate::search::Index;
use crate::store::StoreError;

/// The mode of a check: with or without repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckMode {
    /// Only report findings.
    Report,
    /// Report findings and repair them where possible.
    Repair,
}

/// The repair status of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepairStatus {
    /// It can be repaired.
    Possible,
    /// It was repaired.
    Done,
    /// It cannot be repaired.
    Impossible,
}

/// An inconsistency in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The damaged item: a session, a message, a lane, the file.
    pub location: String,
    /// The damage and the effect of a repair.
    pub text: String,
    /// The repair status.
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

/// Checks the tables of a database. A section that cannot be read becomes a finding with the repair status that the
/// caller passes as `unread`.
pub(crate) fn check(
    sql: &mut dyn Sql,
    index: &dyn Index,
    mode: CheckMode,
    unread: RepairStatus,
) -> Result<Vec<Finding>, StoreError> {
    let mut examination = Examination { sql, index, mode, findings: Vec::new() };
    let mut is_corrupt = false;
    // Sessions come first: the repair of a lost tip follows a lane to its parent even if the lane is empty, and a
    // placeholder may get the number of a lost message.
    for section in [
        Section::Texts,
        Section::Sessions,
        Section::Messages,
        Section::Tips,
        Section::Lanes,
        Section::Blobs,
        Section::Index,
    ] {
        let result = match section {
            Section::Texts => texts::check(&mut examination),
            Section::Sessions => sessions::check(&mut examination),
            Section::Messages => chains::check(&mut examination),
            // The repair of messages deletes those at impossible positions, which may be tips.
            Section::Tips if mode == CheckMode::Repair => sessions::check_tips(&mut examination),
            Section::Tips => Ok(()),
            Section::Lanes => lanes::check_empty(&mut examination),
            Section::Blobs => blobs::check(&mut examination),
            Section::Index => index::check(&mut examination),
        };
        match result {
            Ok(()) => {}
            // An unreadable section does not prevent the check of the others.
            Err(StoreError::Corrupt(text)) => {
                is_corrupt = true;
                examination.findings.push(Finding { location: section.name().into(), text, repair: unread });
            }
            // After corruption, a database may reject all further statements.
            Err(_) if is_corrupt => break,
            Err(error) => return Err(error),
        }
    }
    Ok(examination.findings)
}

/// The sections of a check.
#[derive(Debug, Clone, Copy)]
enum Section {
    Texts,
    Sessions,
    Messages,
    Tips,
    Lanes,
    Blobs,
    Index,
}

impl Section {
    fn name(self) -> &'static str {
        match self {
            Section::Texts => "texts",
            Section::Sessions => "sessions",
            Section::Messages => "messages",
            Section::Tips => "tips",
            Section::Lanes => "lanes",
            Section::Blobs => "blobs",
            Section::Index => "full text index",
        }
    }
}

/// A check in progress with its findings.
struct Examination<'a> {
    sql: &'a mut dyn Sql,
    index: &'a dyn Index,
    mode: CheckMode,
    findings: Vec<Finding>,
}

impl Examination<'_> {
    /// Reports a finding that cannot be repaired.
    fn report_lost(&mut self, location: String, text: String) {
        self.findings.push(Finding { location, text, repair: RepairStatus::Impossible });
    }

    /// Reports a finding that one statement repairs, and runs the statement in repair mode.
    fn repair_with(
        &mut self,
        location: String,
        text: String,
        statement: &str,
        values: &[SqlValue<'_>],
    ) -> Result<(), StoreError> {
        if self.mode == CheckMode::Repair {
            self.sql.execute(statement, values)?;
        }
        self.report_repairable(location, text);
        Ok(())
    }

    /// Reports a finding that can be repaired, or was repaired by the caller in repair mode.
    fn report_repairable(&mut self, location: String, text: String) {
        let repair = if self.mode == CheckMode::Repair { RepairStatus::Done } else { RepairStatus::Possible };
        self.findings.push(Finding { location, text, repair });
    }
}
