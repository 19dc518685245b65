//! Whether every message can be found by its words.

use super::{CheckMode, Examination};
use crate::search::{self, Index};
use crate::store::StoreError;

/// Looks whether the full text index agrees with the messages, after those have been looked through.
pub(super) fn check(patient: &mut Examination<'_>, index: &dyn Index) -> Result<(), StoreError> {
    let n_wrong = index.n_inconsistent(patient.sql)?;
    if n_wrong == 0 {
        return Ok(());
    }
    if patient.care == CheckMode::Repair {
        search::rebuild(patient.sql, index)?;
    }
    let text = format!("{n_wrong} messages are missing from it or stand in it wrongly; it is made anew");
    patient.report_repairable("full text index".into(), text);
    Ok(())
}
