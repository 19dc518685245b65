//! The SQL schema as numbered migration steps. A released step is never changed; changes are added as a new step.
//! A step with the same SQL for both databases is one file in both lists.

use crate::store::StoreError;

/// The migration steps of a SQLite store, in order.
pub(crate) const SQLITE: &[&str] = &[include_str!("sqlite-1.sql"), include_str!("sqlite-2.sql")];

/// The migration steps of a PostgreSQL store, in order.
#[cfg(feature = "postgres")]
pub(crate) const POSTGRES: &[&str] = &[include_str!("postgres-1.sql"), include_str!("postgres-2.sql")];

/// Returns the schema version after all steps.
pub(crate) fn newest_version(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// Returns the steps that upgrade a store from the version `found` to the newest.
pub(crate) fn pending_steps(
    steps: &'static [&'static str],
    found: u32,
) -> Result<&'static [&'static str], StoreError> {
    steps.get(found as usize..).ok_or(StoreError::TooNew { found, known: newest_version(steps) })
}
