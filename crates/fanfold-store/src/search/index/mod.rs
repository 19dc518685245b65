//! Full text indexes: in memory, in SQLite and in PostgreSQL.

pub(crate) mod memory; //   an index in memory
pub(crate) mod lookup; //   the part of SQL indexing and searching that both databases share
pub(crate) mod backlog; //  decides when to index new messages
pub(crate) mod sqlite; //   the index in SQLite
#[cfg(feature = "postgres")]
pub(crate) mod postgres; // the index in PostgreSQL
