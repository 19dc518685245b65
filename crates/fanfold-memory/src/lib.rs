//! What is remembered from one session to the next: two small files that people can read and write as well.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod entries; // what a file holds, and how it is changed: values in, values out
mod files; //   the files: locked, replaced as a whole, the last one kept

pub use entries::{Change, Refused, change, entries, used};
pub use files::{Book, ChangeError, Changed, Memory};
