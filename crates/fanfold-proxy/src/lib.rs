//! HTTP in front of a model provider: folds what passes, and never makes a request worse.
//!
//! ```text
//! client --> route --> engine (a blocking thread, a deadline) --> upstream --> client
//!              |           | anything of ours fails
//!              +-----------+--------> the body as it came ------^
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

pub mod meter; // what passes through, counted
