//! Runs statements on a SQLite connection.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};

use super::error;
use crate::database::sql::{Cell, Sql, SqlRow, SqlValue};
use crate::store::StoreError;

/// A SQLite connection within a transaction.
pub(super) struct SqliteExecutor<'a>(pub(super) &'a Connection);

impl ToSql for SqlValue<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self {
            SqlValue::Null => ValueRef::Null,
            SqlValue::Int(number) => ValueRef::Integer(*number),
            SqlValue::Text(text) | SqlValue::Json(text) => ValueRef::Text(text.as_bytes()),
            SqlValue::Bytes(bytes) => ValueRef::Blob(bytes),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

impl Sql for SqliteExecutor<'_> {
    fn query(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<Vec<SqlRow>, StoreError> {
        let mut statement = self.0.prepare_cached(sql).map_err(error::convert)?;
        query(&mut statement, values).map_err(error::convert)
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.0.prepare_cached(sql).map_err(error::convert)?;
        let n = statement.execute(params_from_iter(values)).map_err(error::convert)?;
        Ok(n as u64)
    }

    fn new_numbers(&mut self, n: usize) -> Result<Vec<i64>, StoreError> {
        // Numbers of deleted messages are not reused, because users and tools may still refer to them.
        let text = "SELECT max(coalesce((SELECT max(number) FROM nodes), 0), \
             coalesce((SELECT value FROM marks WHERE name = 'numbered'), 0)) + 1";
        let mut statement = self.0.prepare_cached(text).map_err(error::convert)?;
        let first: i64 = statement.query_row([], |row| row.get(0)).map_err(error::convert)?;
        Ok((first..).take(n).collect())
    }

    fn lock_session(&mut self, _id: &str) -> Result<(), StoreError> {
        // SQLite runs one writing transaction at a time.
        Ok(())
    }
}

fn query(statement: &mut Statement<'_>, values: &[SqlValue<'_>]) -> rusqlite::Result<Vec<SqlRow>> {
    let n_columns = statement.column_count();
    let mut found = statement.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let cells = (0..n_columns).map(|i| row.get_ref(i).map(cell)).collect::<Result<_, _>>()?;
        rows.push(SqlRow::new(cells));
    }
    Ok(rows)
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        // No column has this type.
        ValueRef::Real(number) => Cell::Text(number.to_string()),
        // Invalid UTF-8 means corruption; reading the cell as a text reports it.
        ValueRef::Text(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Cell::Text(text),
            Err(error) => Cell::Bytes(error.into_bytes()),
        },
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}
