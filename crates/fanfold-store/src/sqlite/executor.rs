//! Statements on a connection.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};

use super::error;
use crate::database::sql::{Cell, Row, Sql, SqlValue};
use crate::store::StoreError;

/// A connection within a transaction.
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
    fn query(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<Vec<Row>, StoreError> {
        let mut statement = self.0.prepare_cached(sql).map_err(error::convert)?;
        query(&mut statement, values).map_err(error::convert)
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.0.prepare_cached(sql).map_err(error::convert)?;
        let n = statement.execute(params_from_iter(values)).map_err(error::convert)?;
        Ok(n as u64)
    }

    fn new_numbers(&mut self, n: usize) -> Result<Vec<i64>, StoreError> {
        // A number that was swept stays used: the index and people may know it.
        let text = "SELECT max(coalesce((SELECT max(number) FROM nodes), 0), \
             coalesce((SELECT value FROM marks WHERE name = 'numbered'), 0)) + 1";
        let mut statement = self.0.prepare_cached(text).map_err(error::convert)?;
        let first: i64 = statement.query_row([], |row| row.get(0)).map_err(error::convert)?;
        Ok((first..).take(n).collect())
    }

    fn lock_session(&mut self, _id: &str) -> Result<(), StoreError> {
        // One transaction writes at a time.
        Ok(())
    }
}

fn query(statement: &mut Statement<'_>, values: &[SqlValue<'_>]) -> rusqlite::Result<Vec<Row>> {
    let n_columns = statement.column_count();
    let mut found = statement.query(params_from_iter(values))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let cells = (0..n_columns).map(|i| row.get_ref(i).map(cell)).collect::<Result<_, _>>()?;
        rows.push(Row::new(cells));
    }
    Ok(rows)
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        // No column of ours holds one.
        ValueRef::Real(number) => Cell::Text(number.to_string()),
        // Text that is no UTF-8 was not written by us; whoever reads the cell says so.
        ValueRef::Text(bytes) => match String::from_utf8(bytes.to_vec()) {
            Ok(text) => Cell::Text(text),
            Err(error) => Cell::Bytes(error.into_bytes()),
        },
        ValueRef::Blob(bytes) => Cell::Bytes(bytes.to_vec()),
    }
}
