//! What PostgreSQL's errors mean here.

use postgres::error::SqlState;

use crate::store::StoreError;

/// The error of ours that one of PostgreSQL's is.
pub(super) fn convert(error: postgres::Error) -> StoreError {
    let Some(code) = error.code() else { return StoreError::Other(error.into()) };
    // Two wrote the same thing at once; or the server wants some time. The same again, and it is known who was first.
    let again = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
    ];
    if again.contains(code) {
        return StoreError::Busy { tries: 1 };
    }
    if *code == SqlState::DISK_FULL {
        return StoreError::Full;
    }
    if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) {
        return StoreError::Broken(error.to_string());
    }
    let text = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    StoreError::Other(format!("PostgreSQL says: {text}").into())
}
