//! What is kept beside the messages.

use super::{CheckMode, Examination};
use crate::chain::BlobId;
use crate::store::StoreError;
use crate::{sweep, tables};

pub(super) fn check(patient: &mut Examination<'_>) -> Result<(), StoreError> {
    let mut ids = Vec::new();
    for mut row in patient.sql.query("SELECT id FROM blobs", &[])? {
        ids.extend(row.opt_hash()?);
    }
    for id in ids {
        let bytes = tables::blob(patient.sql, BlobId(id))?.unwrap_or_default();
        if BlobId::new(&bytes) != BlobId(id) {
            patient.report_lost(format!("bytes {}", BlobId(id)), "they are not what was written".into());
        }
    }
    let unnamed = sweep::unreferenced_blobs(patient.sql)?;
    if !unnamed.is_empty() {
        if patient.care == CheckMode::Repair {
            sweep::delete_unreferenced_blobs(patient.sql)?;
        }
        let text = format!("no event names {} of them, as after a session was deleted", unnamed.len());
        patient.report_repairable("bytes".into(), text);
    }
    Ok(())
}
