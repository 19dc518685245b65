//! What is kept beside the messages.

use super::{Care, Patient};
use crate::chain::BlobId;
use crate::store::StoreError;
use crate::{sweep, tables};

pub(super) fn examine(patient: &mut Patient<'_>) -> Result<(), StoreError> {
    let mut ids = Vec::new();
    for mut row in patient.sql.rows("SELECT id FROM blobs", &[])? {
        ids.extend(row.opt_hash()?);
    }
    for id in ids {
        let bytes = tables::blob(patient.sql, BlobId(id))?.unwrap_or_default();
        if BlobId::of(&bytes) != BlobId(id) {
            patient.lost(format!("bytes {}", BlobId(id)), "they are not what was written".into());
        }
    }
    let unnamed = sweep::unnamed_blobs(patient.sql)?;
    if !unnamed.is_empty() {
        if patient.care == Care::Repair {
            sweep::sweep_blobs(patient.sql)?;
        }
        let text = format!("no event names {} of them, as after a session was deleted", unnamed.len());
        patient.cured("bytes".into(), text);
    }
    Ok(())
}
