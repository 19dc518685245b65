//! The contract of memory providers, including faulty ones.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setup; //     scripted providers and turns
mod turns; //     recall before a turn, writes after it
mod faults; //    providers that hang, crash, flood or send nonsense
mod reference; // the MCP reference server from npm
