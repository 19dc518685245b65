//! Runs statements on a PostgreSQL connection.

use bytes::BytesMut;
use postgres::Statement;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::connect::PgConnection;
use super::error;
use crate::database::sql::{Cell, Sql, SqlRow, SqlValue};
use crate::store::StoreError;

impl ToSql for SqlValue<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            SqlValue::Null => Ok(IsNull::Yes),
            SqlValue::Int(number) => number.to_sql(ty, out),
            SqlValue::Text(text) => text.to_sql(ty, out),
            SqlValue::Json(text) => text.as_bytes().to_sql(ty, out),
            SqlValue::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::TEXT, Type::BYTEA].contains(ty)
    }

    to_sql_checked!();
}

impl PgConnection {
    /// Returns the prepared statement of an SQL text; prepares it on first use.
    fn statement(&mut self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).map_err(error::convert)?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl Sql for PgConnection {
    fn query(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<Vec<SqlRow>, StoreError> {
        let statement = self.statement(sql)?;
        let rows = self.client.query(&statement, &parameters(values)).map_err(error::convert)?;
        rows.iter().map(|row| read(row).map_err(error::convert)).collect()
    }

    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64, StoreError> {
        let statement = self.statement(sql)?;
        self.client.execute(&statement, &parameters(values)).map_err(error::convert)
    }

    fn new_numbers(&mut self, n: usize) -> Result<Vec<i64>, StoreError> {
        let text = "SELECT nextval('numbers') FROM generate_series(1, CAST($1 AS BIGINT))";
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        let rows = self.query(text, &[SqlValue::Int(n)])?;
        let mut numbers = rows.into_iter().map(|mut row| row.int()).collect::<Result<Vec<_>, _>>()?;
        numbers.sort_unstable();
        Ok(numbers)
    }

    fn lock_session(&mut self, id: &str) -> Result<(), StoreError> {
        self.query("SELECT key FROM sessions WHERE id = $1 FOR UPDATE", &[SqlValue::Text(id)]).map(drop)
    }
}

fn parameters<'a>(values: &'a [SqlValue<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
}

fn read(row: &postgres::Row) -> Result<SqlRow, postgres::Error> {
    let mut cells = Vec::with_capacity(row.len());
    for (i, column) in row.columns().iter().enumerate() {
        let cell = match *column.type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(i)?.map(Cell::Int),
            Type::INT4 => row.try_get::<_, Option<i32>>(i)?.map(|number| Cell::Int(number.into())),
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(i)?.map(Cell::Bytes),
            _ => row.try_get::<_, Option<String>>(i)?.map(Cell::Text),
        };
        cells.push(cell.unwrap_or(Cell::Null));
    }
    Ok(SqlRow::new(cells))
}
