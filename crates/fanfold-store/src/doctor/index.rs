//! Whether every message can be found by its words.

use super::{Care, Patient};
use crate::search::{self, Index};
use crate::store::StoreError;

/// Looks whether the full text index agrees with the messages, after those have been looked through.
pub(super) fn examine(patient: &mut Patient<'_>, index: &dyn Index) -> Result<(), StoreError> {
    let n_wrong = index.n_wrong(patient.sql)?;
    if n_wrong == 0 {
        return Ok(());
    }
    if patient.care == Care::Repair {
        search::rebuild(patient.sql, index)?;
    }
    let text = format!("{n_wrong} messages are missing from it or stand in it wrongly; it is made anew");
    patient.cured("full text index".into(), text);
    Ok(())
}
