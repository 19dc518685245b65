//! Integers that callers store under a name. A `user:` prefix separates them from the store's own names in the table.

use crate::database::sql::{Sql, SqlValue, query_row};
use crate::store::StoreError;

type Result<T> = std::result::Result<T, StoreError>;

/// Returns the integer stored under a name.
pub(crate) fn get(sql: &mut dyn Sql, name: &str) -> Result<Option<i64>> {
    let found = query_row(sql, "SELECT value FROM marks WHERE name = $1", &[SqlValue::Text(&key(name))])?;
    found.map(|mut found| found.int()).transpose()
}

/// Stores an integer under a name.
pub(crate) fn set(sql: &mut dyn Sql, name: &str, value: i64) -> Result<()> {
    let text = "INSERT INTO marks (name, value) VALUES ($1, $2) \
         ON CONFLICT (name) DO UPDATE SET value = excluded.value";
    sql.execute(text, &[SqlValue::Text(&key(name)), SqlValue::Int(value)])?;
    Ok(())
}

/// The name as stored in the table.
fn key(name: &str) -> String {
    format!("user:{name}")
}
