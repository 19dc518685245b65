//! Checks that the full text index contains every message.

use super::{CheckMode, Examination};
use crate::search;
use crate::store::StoreError;

/// Compares the full text index with the messages, and rebuilds it in repair mode. Messages must be checked before.
pub(super) fn check(examination: &mut Examination<'_>) -> Result<(), StoreError> {
    let index = examination.index;
    let n_inconsistent = index.n_inconsistent(examination.sql)?;
    if n_inconsistent == 0 {
        return Ok(());
    }
    if examination.mode == CheckMode::Repair {
        search::rebuild(examination.sql, index)?;
    }
    let text =
        format!("{n_inconsistent} messages are missing from it or indexed wrongly; a repair rebuilds it");
    examination.report_repairable("full text index".into(), text);
    Ok(())
}
