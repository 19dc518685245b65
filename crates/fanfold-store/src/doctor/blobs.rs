//! What is kept beside the messages.

use super::{CheckMode, Examination};
use crate::database::{garbage, tables};
use crate::model::BlobId;
use crate::store::StoreError;

pub(super) fn check(examination: &mut Examination<'_>) -> Result<(), StoreError> {
    let mut ids = Vec::new();
    for mut row in examination.sql.query("SELECT id FROM blobs", &[])? {
        ids.extend(row.opt_hash()?);
    }
    for id in ids {
        let bytes = tables::blob(examination.sql, BlobId(id))?.unwrap_or_default();
        if BlobId::new(&bytes) != BlobId(id) {
            examination.report_lost(format!("bytes {}", BlobId(id)), "they are not what was written".into());
        }
    }
    let unnamed = garbage::unreferenced_blobs(examination.sql)?;
    if !unnamed.is_empty() {
        if examination.mode == CheckMode::Repair {
            garbage::delete_unreferenced_blobs(examination.sql)?;
        }
        let text = format!("no event names {} of them, as after a session was deleted", unnamed.len());
        examination.report_repairable("bytes".into(), text);
    }
    Ok(())
}
