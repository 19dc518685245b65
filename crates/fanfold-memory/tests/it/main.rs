//! What a provider of memory may do, and what comes of it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setting; //   providers that are scripted, and turns
mod life; //      a turn asked, answered and written down
mod faults; //    providers that hang, crash, flood and lie
mod reference; // the reference server, from npm
