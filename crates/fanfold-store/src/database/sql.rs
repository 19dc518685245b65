//! The little that is asked of a database, so that everything above it is written once.
//!
//! SQLite and PostgreSQL run the same statements: parameters are `$1`, `$2`, … in the order of their first appearance,
//! numbers are 64 bits wide, and what differs has a method here.

use crate::model::NodeId;
use crate::store::StoreError;

/// A value given to a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SqlValue<'a> {
    /// Nothing.
    Null,
    /// A number.
    Int(i64),
    /// A name, which has no NUL character.
    Text(&'a str),
    /// A text of any characters: PostgreSQL keeps it as bytes, since it refuses NUL in a text.
    Json(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl<'a> SqlValue<'a> {
    /// A name that may be missing.
    pub(crate) fn text(text: Option<&'a str>) -> SqlValue<'a> {
        text.map_or(SqlValue::Null, SqlValue::Text)
    }

    /// A number that may be missing.
    pub(crate) fn int(number: Option<i64>) -> SqlValue<'a> {
        number.map_or(SqlValue::Null, SqlValue::Int)
    }
}

/// A value that came back.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// Nothing.
    Null,
    /// A number.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A row that came back; its cells are read in order.
#[derive(Debug)]
pub(crate) struct Row {
    cells: std::vec::IntoIter<Cell>,
}

impl Row {
    /// A row of these cells.
    pub(crate) fn new(cells: Vec<Cell>) -> Row {
        Row { cells: cells.into_iter() }
    }

    /// The next cell, a number or nothing.
    pub(crate) fn opt_int(&mut self) -> Result<Option<i64>, StoreError> {
        match self.cells.next() {
            Some(Cell::Int(number)) => Ok(Some(number)),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("a number", other.as_ref())),
        }
    }

    /// The next cell, a number.
    pub(crate) fn int(&mut self) -> Result<i64, StoreError> {
        self.opt_int()?.ok_or_else(|| unexpected("a number", None))
    }

    /// The next cell, a number of any type of ours.
    pub(crate) fn integer<T: TryFrom<i64>>(&mut self) -> Result<T, StoreError> {
        let number = self.int()?;
        T::try_from(number).map_err(|_| StoreError::Broken(format!("the number {number} is out of range")))
    }

    /// The next cell, a text or nothing.
    pub(crate) fn opt_text(&mut self) -> Result<Option<String>, StoreError> {
        match self.cells.next() {
            Some(Cell::Text(text)) => Ok(Some(text)),
            Some(Cell::Bytes(bytes)) => String::from_utf8(bytes)
                .map(Some)
                .map_err(|error| StoreError::Broken(format!("a text is not UTF-8: {error}"))),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("a text", other.as_ref())),
        }
    }

    /// The next cell, a text.
    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.opt_text()?.ok_or_else(|| unexpected("a text", None))
    }

    /// The next cell, bytes or nothing.
    pub(crate) fn opt_bytes(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.cells.next() {
            Some(Cell::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Cell::Text(text)) => Ok(Some(text.into_bytes())),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("bytes", other.as_ref())),
        }
    }

    /// The next cell, a hash or nothing.
    pub(crate) fn opt_hash(&mut self) -> Result<Option<[u8; 32]>, StoreError> {
        let Some(bytes) = self.opt_bytes()? else { return Ok(None) };
        let hash = bytes.try_into().map_err(|bytes: Vec<u8>| {
            StoreError::Broken(format!("an id has {} bytes instead of 32", bytes.len()))
        })?;
        Ok(Some(hash))
    }

    /// The next cell, the id of a message.
    pub(crate) fn node_id(&mut self) -> Result<NodeId, StoreError> {
        self.opt_hash()?.map(NodeId).ok_or_else(|| unexpected("an id", None))
    }
}

fn unexpected(wanted: &str, found: Option<&Cell>) -> StoreError {
    StoreError::Broken(format!("a row has {found:?} where {wanted} should be"))
}

/// A database within a transaction.
pub(crate) trait Sql {
    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<Vec<Row>, StoreError>;

    /// Runs a statement and gives how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[SqlValue<'_>]) -> Result<u64, StoreError>;

    /// So many new numbers for messages, in order. A number is never given twice.
    fn new_numbers(&mut self, n: usize) -> Result<Vec<i64>, StoreError>;

    /// Keeps others from changing a session before the transaction ends.
    fn lock_session(&mut self, id: &str) -> Result<(), StoreError>;
}

/// The only row of a query, or none.
pub(crate) fn query_row(
    sql: &mut dyn Sql,
    text: &str,
    values: &[SqlValue<'_>],
) -> Result<Option<Row>, StoreError> {
    Ok(sql.query(text, values)?.into_iter().next())
}
