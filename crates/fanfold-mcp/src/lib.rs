//! Search, recall and status of sessions as MCP tools, over stdio and streamable HTTP.
//!
//! ```text
//! client --> stdio or http --> server --> a tool, on a blocking thread, with a deadline --> engine, store
//! ```
//!
//! Everything is read-only. What a model asks wrongly is answered by a tool's error with the next step, so that it can
//! correct itself; the protocol's own errors are for clients that don't speak it.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod source; //    where sessions are kept, opened when they are asked for
mod wrong; //     why a tool did not do it
mod arguments; // what a model wrote, read kindly
mod named; //     which original is meant
mod bounds; //    how much is answered at once
mod tools; //     the three tools
mod server; //    a call from start to end
mod stdio; //     JSON lines on stdin and stdout
mod listener; //  only so many connections, and none that stands still
mod http; //      streamable HTTP, and who may come in

pub use http::{Access, AccessError, PATHS, http_service, listen};
pub use server::{Server, Settings, server};
pub use source::{Source, StoreAt, Unopened};
pub use stdio::stdio;
