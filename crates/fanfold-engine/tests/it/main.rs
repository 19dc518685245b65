//! What the engine promises.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setting; //  engines, terms and bodies for tests
mod requests; // what leaves, and how it is made again
