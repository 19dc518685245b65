//! Full text indexes: in memory, in SQLite and in PostgreSQL.

pub(crate) mod memory; //   an index in memory
pub(crate) mod sql_index; // the index of a database: the interface and the shared SQL
pub(crate) mod lookup; //   searches a database
pub(crate) mod owners; //   the sessions that contain a message
pub(crate) mod backlog; //  decides when to index new messages
pub(crate) mod sqlite; //   the index in SQLite
#[cfg(feature = "postgres")]
pub(crate) mod postgres; // the index in PostgreSQL
