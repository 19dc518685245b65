//! What SQLite's errors mean here.

use rusqlite::{ErrorCode, ffi};

use crate::store::StoreError;

/// The error of ours that one of SQLite's is.
pub(crate) fn convert(error: rusqlite::Error) -> StoreError {
    let Some(code) = error.sqlite_error() else { return StoreError::Other(error.into()) };
    // A limit on the size of files and a quota come as failed writes.
    let is_write = [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_SHMSIZE].contains(&code.extended_code);
    match code.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreError::Busy { tries: 1 }
        }
        ErrorCode::DiskFull => StoreError::Full,
        ErrorCode::SystemIoFailure if is_write => StoreError::Full,
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => StoreError::Broken(error.to_string()),
        _ => StoreError::Other(error.into()),
    }
}
