//! Looks whether a store holds what it should, and repairs what can be.
//!
//! Every id is recomputed from the messages, so a changed byte is found. What follows from something else (counts, roles,
//! lanes of tips, indexes) is made again; a message that is gone or changed can't be, and is named.

mod chains; //   lanes, and the messages in them
mod sessions; // who points where, and what happened to them
mod bytes; //    what is kept beside the messages
mod index; //    whether every message can be found

use std::fmt;

use crate::search::Index;
use crate::sql::{Sql, Value};
use crate::store::StoreError;

/// What is to be done about findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Tell them.
    Check,
    /// Repair what can be.
    Repair,
}

/// What can be done about a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// It can be repaired.
    Possible,
    /// It was.
    Done,
    /// It can't be.
    None,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Where: a session, a message, a lane, the file.
    pub place: String,
    /// What is wrong, and what a repair does about it.
    pub text: String,
    /// What can be done.
    pub cure: Cure,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = match self.cure {
            Cure::Possible => " (can be repaired)",
            Cure::Done => " (repaired)",
            Cure::None => " (can't be repaired)",
        };
        write!(f, "{}: {}{end}", self.place, self.text)
    }
}

/// Looks through the tables of a database. `unread` says what can be done about one that can't be read through.
pub(crate) fn examine(
    sql: &mut dyn Sql,
    index: &dyn Index,
    care: Care,
    unread: Cure,
) -> Result<Vec<Finding>, StoreError> {
    let mut patient = Patient { sql, care, findings: Vec::new() };
    let mut is_broken = false;
    // Sessions before messages: a lane without one still leads to where a tip is set back to.
    for place in [Place::Sessions, Place::Messages, Place::Bytes, Place::Index] {
        let result = match place {
            Place::Sessions => sessions::examine(&mut patient),
            Place::Messages => chains::examine(&mut patient),
            Place::Bytes => bytes::examine(&mut patient),
            Place::Index => index::examine(&mut patient, index),
        };
        match result {
            Ok(()) => {}
            // One place that can't be read through leaves the others to be looked at.
            Err(StoreError::Broken(text)) => {
                is_broken = true;
                patient.findings.push(Finding { place: place.name().into(), text, cure: unread });
            }
            // A database may refuse everything after that.
            Err(_) if is_broken => break,
            Err(error) => return Err(error),
        }
    }
    Ok(patient.findings)
}

/// What is looked through, one after the other.
#[derive(Debug, Clone, Copy)]
enum Place {
    Sessions,
    Messages,
    Bytes,
    Index,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Sessions => "sessions",
            Place::Messages => "messages",
            Place::Bytes => "bytes",
            Place::Index => "full text index",
        }
    }
}

/// A database being looked through.
struct Patient<'a> {
    sql: &'a mut dyn Sql,
    care: Care,
    findings: Vec<Finding>,
}

impl Patient<'_> {
    /// Notes something that nothing can be done about.
    fn lost(&mut self, place: String, text: String) {
        self.findings.push(Finding { place, text, cure: Cure::None });
    }

    /// Notes something that a statement repairs, and runs it if asked to.
    fn cured_by(
        &mut self,
        place: String,
        text: String,
        cure: &str,
        values: &[Value<'_>],
    ) -> Result<(), StoreError> {
        if self.care == Care::Repair {
            self.sql.run(cure, values)?;
        }
        self.cured(place, text);
        Ok(())
    }

    /// Notes something that is repaired, if that was asked for.
    fn cured(&mut self, place: String, text: String) {
        let cure = if self.care == Care::Repair { Cure::Done } else { Cure::Possible };
        self.findings.push(Finding { place, text, cure });
    }
}
