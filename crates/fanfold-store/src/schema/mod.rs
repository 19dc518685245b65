//! How a store is laid out, in numbered steps. A step that was once released is never changed: the next one is added.

use crate::store::StoreError;

/// The steps of a SQLite store, the first one first.
pub(crate) const SQLITE: &[&str] = &[include_str!("sqlite-1.sql"), include_str!("sqlite-2.sql")];

/// The steps of a PostgreSQL store, the first one first.
#[cfg(feature = "postgres")]
pub(crate) const POSTGRES: &[&str] = &[include_str!("postgres-1.sql"), include_str!("postgres-2.sql")];

/// The newest version that is known.
pub(crate) fn newest_version(steps: &[&str]) -> u32 {
    u32::try_from(steps.len()).unwrap_or(u32::MAX)
}

/// Which steps are still to be taken from a version on.
pub(crate) fn pending_steps(
    steps: &'static [&'static str],
    found: u32,
) -> Result<&'static [&'static str], StoreError> {
    steps.get(found as usize..).ok_or(StoreError::TooNew { found, known: newest_version(steps) })
}
