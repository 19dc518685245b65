//! How a store is laid out, in numbered steps. A step that was once released is never changed: the next one is added.

use crate::store::StoreError;

/// The steps of a SQLite store, the first one first.
pub(crate) const SQLITE: &[&str] = &[include_str!("sqlite-1.sql"), include_str!("sqlite-2.sql")];

/// Which steps are still to be taken from a version on.
pub(crate) fn missing(
    steps: &'static [&'static str],
    found: u32,
) -> Result<&'static [&'static str], StoreError> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    steps.get(found as usize..).ok_or(StoreError::TooNew { found, known })
}
