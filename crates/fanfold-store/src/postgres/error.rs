//! Converts PostgreSQL's errors.

use postgres::error::SqlState;

use crate::store::StoreError;

/// Converts an error of PostgreSQL.
pub(super) fn convert(error: postgres::Error) -> StoreError {
    let Some(code) = error.code() else { return StoreError::Other(error.into()) };
    // Conflicts of concurrent transactions, and states of the server that pass: the transaction can be retried.
    let retryable = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
        SqlState::LOCK_NOT_AVAILABLE,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
    ];
    if retryable.contains(code) {
        return StoreError::Busy { tries: 1 };
    }
    if *code == SqlState::DISK_FULL {
        return StoreError::DiskFull;
    }
    if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) {
        return StoreError::Corrupt(error.to_string());
    }
    let text = error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    StoreError::Other(format!("PostgreSQL error: {text}").into())
}
