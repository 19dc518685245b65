//! Search, recall and status of sessions as MCP tools, over stdio and streamable HTTP.
//!
//! ```text
//! client --> stdio or http --> server --> a tool, on a blocking thread, with a deadline --> engine, store
//! ```
//!
//! Everything is read-only. A call with wrong arguments returns a tool error with a hint, so that the model can correct
//! itself; protocol errors are for clients that send invalid MCP.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod source; //        opens the store for each call
mod tool_error; //    the error of a tool: message and hint
mod arguments; //     lenient parsing of arguments
mod recall_target; // parses handles and message ids
mod excerpt; //       limits the length of an answer
mod tools; //         the three tools
mod server; //        runs a call with a deadline
mod stdio; //         JSON lines on stdin and stdout
mod http; //          streamable HTTP and access control

pub use http::{AccessError, AccessRules, PATHS, http_service, listen};
pub use server::{Server, ServerSettings};
pub use stdio::stdio;
