//! What every store promises.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod words; //    short ways to write a batch
mod cluster; //  a PostgreSQL server for as long as the tests run
mod contract; // one suite that every store passes
mod model; //    random batches give the same answers in every store
mod postgres; // what only a server can do wrong
mod sqlite; //   what only a file can do wrong
