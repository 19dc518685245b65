//! Scripted replacements of external programs, with faults.

pub mod memory_server; // a memory provider over HTTP or stdio
pub mod summaries; //     good and bad summaries, and a model server that writes good ones
pub mod upstream; //      a model provider on loopback
