//! The tables to save and the shapes of their rows, which identify the table of a page without a parent.

use super::page_file::Row;
use crate::database::sql::Cell;

/// A table that cannot be derived from others.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// An index with an entry for each row.
    pub(super) index: &'static str,
    columns: &'static [Column],
}

/// The values that a column accepts.
#[derive(Debug, Clone, Copy)]
enum Column {
    /// The key of the row, which the row itself stores as NULL.
    Key,
    /// The key of a row of another table.
    Reference,
    OptReference,
    /// A depth or a count.
    Count,
    Int,
    OptInt,
    Text,
    OptText,
    Hash,
    Bytes,
}

use Column::{Bytes, Count, Hash, Int, Key, OptInt, OptReference, OptText, Reference, Text};

pub(super) const TABLES: [Table; 5] = [
    Table { name: "lanes", index: "lanes_by_parent", columns: &[Key, OptReference, Count] },
    Table { name: "nodes", index: "nodes_by_id", columns: &[Key, Hash, Reference, Count, Text, Int, Text] },
    Table {
        name: "sessions",
        index: SESSION_IDS,
        columns: &[
            Key,
            Text,
            Text,
            Text,
            OptText,
            OptText,
            OptText,
            OptText,
            OptText,
            Text,
            OptReference,
            OptReference,
            Count,
            Count,
            Int,
            Int,
            OptInt,
            OptText,
        ],
    },
    Table {
        name: "events",
        index: "events_by_session",
        columns: &[Key, Reference, Count, Int, OptReference, Text, Text],
    },
    Table { name: "blobs", index: "sqlite_autoindex_blobs_1", columns: &[Hash, Bytes] },
];

/// The index that SQLite creates for the ids of sessions.
pub(super) const SESSION_IDS: &str = "sqlite_autoindex_sessions_1";

/// Larger keys are damaged: no store has that many rows.
const MAX_KEY: i64 = 1 << 48;

impl Table {
    /// Returns whether a row has the shape of a row of this table.
    pub(super) fn accepts(&self, row: &Row) -> bool {
        let accepts = |(column, cell): (&Column, &Cell)| match (column, cell, row.key) {
            (Key, Cell::Null, Some(key)) => Key.accepts(&Cell::Int(key)),
            _ => column.accepts(cell),
        };
        row.cells.len() == self.columns.len() && self.columns.iter().zip(&row.cells).all(accepts)
    }
}

impl Column {
    fn accepts(self, cell: &Cell) -> bool {
        match (self, cell) {
            (OptReference | OptInt | OptText, Cell::Null) => true,
            (Key | Reference | OptReference, Cell::Int(key)) => (1..=MAX_KEY).contains(key),
            (Count, Cell::Int(count)) => u32::try_from(*count).is_ok(),
            (Int | OptInt, Cell::Int(_)) | (Text | OptText, Cell::Text(_)) | (Bytes, Cell::Bytes(_)) => true,
            (Hash, Cell::Bytes(hash)) => hash.len() == 32,
            _ => false,
        }
    }
}
