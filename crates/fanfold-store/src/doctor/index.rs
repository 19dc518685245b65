//! Whether every message can be found by its words.

use super::{CheckMode, Examination};
use crate::search::{self, Index};
use crate::store::StoreError;

/// Looks whether the full text index agrees with the messages, after those have been looked through.
pub(super) fn check(examination: &mut Examination<'_>, index: &dyn Index) -> Result<(), StoreError> {
    let n_wrong = index.n_inconsistent(examination.sql)?;
    if n_wrong == 0 {
        return Ok(());
    }
    if examination.mode == CheckMode::Repair {
        search::rebuild(examination.sql, index)?;
    }
    let text = format!("{n_wrong} messages are missing from it or stand in it wrongly; it is made anew");
    examination.report_repairable("full text index".into(), text);
    Ok(())
}
