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
    if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        let text = format!("PostgreSQL error: {}{GRANT_HINT}", message(&error));
        return StoreError::Other(text.into());
    }
    StoreError::Other(format!("PostgreSQL error: {}", message(&error)).into())
}

/// The statements that let another role than the owner of the schema use the store.
const GRANT_HINT: &str = "\n\nhint: the role that created the store lets ROLE use it with: GRANT USAGE ON SCHEMA fanfold TO ROLE; \
     GRANT ALL ON ALL TABLES IN SCHEMA fanfold TO ROLE; GRANT ALL ON ALL SEQUENCES IN SCHEMA fanfold TO ROLE";

fn message(error: &postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}
