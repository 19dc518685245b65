//! The part of a SQL store that is independent of the database: statements, reads, batches.

pub(crate) mod sql; //           the operations needed from a database
pub(crate) mod tables; //        one function per statement
pub(crate) mod chain; //         reads messages along their lanes
pub(crate) mod commit; //        writes a batch
pub(crate) mod locks; //         one process folds a session at a time
pub(crate) mod named_values; //  integers that callers store under a name
pub(crate) mod garbage; //       removes unreachable messages and blobs
pub(crate) mod sql_store; //     implements `Store` for every database
pub(crate) mod retry; //       repeats attempts with pauses
