//! The interface to a database, so that the code above it is written once for SQLite and PostgreSQL.
//!
//! Both run the same statements: parameters are `$1`, `$2`, … in the order of their first appearance, and integers
//! have 64 bits. Operations that differ are methods of [`Sql`].

use crate::model::NodeId;
use crate::store::StoreError;

/// A parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SqlValue<'a> {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A text without NUL characters.
    Text(&'a str),
    /// A text of any characters. PostgreSQL stores it as bytes, because its texts cannot contain NUL.
    Json(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> SqlValue<'a> {
    /// A text or NULL.
    pub(crate) fn text(text: Option<&'a str>) -> SqlValue<'a> {
        text.map_or(SqlValue::Null, SqlValue::Text)
    }

    /// The maximum number of rows.
    pub(crate) fn limit(n_rows: usize) -> SqlValue<'a> {
        SqlValue::Int(i64::try_from(n_rows).unwrap_or(i64::MAX))
    }

    /// An integer or NULL.
    pub(crate) fn int(number: Option<i64>) -> SqlValue<'a> {
        number.map_or(SqlValue::Null, SqlValue::Int)
    }
}

/// A value in a result row.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Cell {
    /// The cell as a parameter.
    pub(crate) fn as_value(&self) -> SqlValue<'_> {
        match self {
            Cell::Null => SqlValue::Null,
            Cell::Int(number) => SqlValue::Int(*number),
            Cell::Text(text) => SqlValue::Text(text),
            Cell::Bytes(bytes) => SqlValue::Bytes(bytes),
        }
    }
}

/// A result row; its cells are read in order.
#[derive(Debug)]
pub(crate) struct SqlRow {
    cells: std::vec::IntoIter<Cell>,
}

impl SqlRow {
    /// Creates a row of these cells.
    pub(crate) fn new(cells: Vec<Cell>) -> SqlRow {
        SqlRow { cells: cells.into_iter() }
    }

    /// Reads the next cell, an integer or NULL.
    pub(crate) fn opt_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.cells.next() {
            Some(Cell::Int(number)) => Ok(Some(number)),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("a number", other.as_ref())),
        }
    }

    /// Reads the next cell, an integer.
    pub(crate) fn int(&mut self) -> Result<i64, StoreError> {
        self.opt_int()?.ok_or_else(|| unexpected("a number", None))
    }

    /// Reads the next cell, an integer that must fit `T`.
    pub(crate) fn integer<T: TryFrom<i64>>(&mut self) -> Result<T, StoreError> {
        let number = self.int()?;
        T::try_from(number).map_err(|_| StoreError::Corrupt(format!("the number {number} is out of range")))
    }

    /// Reads the next cell, a text or NULL. Bytes that are not UTF-8 become U+FFFD.
    pub(crate) fn opt_text(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.opt_readable_text()?.map(|text| text.text))
    }

    /// Reads the next cell, a text.
    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.opt_text()?.ok_or_else(|| unexpected("a text", None))
    }

    /// Reads the next cell, a text.
    pub(crate) fn readable_text(&mut self) -> Result<ReadableText, StoreError> {
        self.opt_readable_text()?.ok_or_else(|| unexpected("a text", None))
    }

    /// Reads the next cell, a text or NULL.
    pub(crate) fn opt_readable_text(&mut self) -> Result<Option<ReadableText>, StoreError> {
        match self.cells.next() {
            Some(Cell::Text(text)) => Ok(Some(ReadableText { text, is_damaged: false })),
            Some(Cell::Bytes(bytes)) => Ok(Some(match String::from_utf8(bytes) {
                Ok(text) => ReadableText { text, is_damaged: false },
                Err(error) => {
                    let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    ReadableText { text, is_damaged: true }
                }
            })),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("a text", other.as_ref())),
        }
    }

    /// Reads the next cell, bytes or NULL.
    pub(crate) fn opt_bytes(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.cells.next() {
            Some(Cell::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Cell::Text(text)) => Ok(Some(text.into_bytes())),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("bytes", other.as_ref())),
        }
    }

    /// Reads the next cell, a hash or NULL.
    pub(crate) fn opt_hash(&mut self) -> Result<Option<[u8; 32]>, StoreError> {
        let Some(bytes) = self.opt_bytes()? else { return Ok(None) };
        let hash = bytes.try_into().map_err(|bytes: Vec<u8>| {
            StoreError::Corrupt(format!("an id has {} bytes instead of 32", bytes.len()))
        })?;
        Ok(Some(hash))
    }

    /// Reads the next cell, the id of a message.
    pub(crate) fn node_id(&mut self) -> Result<NodeId, StoreError> {
        self.opt_hash()?.map(NodeId).ok_or_else(|| unexpected("an id", None))
    }
}

/// A text whose bytes may be damaged.
#[derive(Debug)]
pub(crate) struct ReadableText {
    /// The text, with U+FFFD for bytes that are not UTF-8.
    pub(crate) text: String,
    /// True if bytes were replaced.
    pub(crate) is_damaged: bool,
}

fn unexpected(expected: &str, found: Option<&Cell>) -> StoreError {
    StoreError::Corrupt(format!("a row has {found:?} where {expected} is expected"))
}

/// A database connection within a transaction.
pub(crate) trait Sql {
    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<Vec<SqlRow>, StoreError>;

    /// Runs a statement and returns the number of changed rows.
    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64, StoreError>;

    /// Allocates `n` message numbers in ascending order. A number is never allocated twice.
    fn new_numbers(&mut self, n: usize) -> Result<Vec<i64>, StoreError>;

    /// Locks a session against changes by other transactions until this one ends.
    fn lock_session(&mut self, id: &str) -> Result<(), StoreError>;
}

/// Runs a query and returns its first row, if any.
pub(crate) fn query_row(
    sql: &mut dyn Sql,
    text: &str,
    values: &[SqlValue<'_>],
) -> Result<Option<SqlRow>, StoreError> {
    Ok(sql.query(text, values)?.into_iter().next())
}
