//! Checks that blobs match their hashes and that events name them.

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
            examination
                .report_lost(format!("blob {}", BlobId(id)), "its content does not match its id".into());
        }
    }
    let unreferenced = garbage::unreferenced_blobs(examination.sql)?;
    if !unreferenced.is_empty() {
        if examination.mode == CheckMode::Repair {
            garbage::delete_unreferenced_blobs(examination.sql)?;
        }
        let text = format!("no event refers to {} of them, as after deleting a session", unreferenced.len());
        examination.report_repairable("blobs".into(), text);
    }
    Ok(())
}
