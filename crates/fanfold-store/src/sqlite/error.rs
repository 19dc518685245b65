//! Converts SQLite's errors.

use rusqlite::{ErrorCode, ffi};

use crate::store::StoreError;

/// Converts an error of SQLite.
pub(crate) fn convert(error: rusqlite::Error) -> StoreError {
    let Some(code) = error.sqlite_error() else { return StoreError::Other(error.into()) };
    // A file size limit or a quota is reported as a failed write.
    let is_write = [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE].contains(&code.extended_code);
    match code.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreError::Busy { tries: 1 }
        }
        ErrorCode::DiskFull => StoreError::DiskFull,
        ErrorCode::SystemIoFailure if is_write => StoreError::DiskFull,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Corrupt(error.to_string()),
        _ => StoreError::Other(error.into()),
    }
}
