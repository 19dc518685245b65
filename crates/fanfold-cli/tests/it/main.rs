//! Tests of the program from outside.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../examples/story/mod.rs"]
mod story; //     what the demo is made of
mod sandbox; //   a place of its own for each test
mod fold; //      conversations in, conversations that fit out
mod summarise; // summaries by a model
mod recall; //    folds opened again
mod sessions; //  what is kept
mod mistakes; //  what is kept, and what a slip does to it
mod kills; //     what is kept after a kill
mod brought; //   what comes from files
mod apart; //     what is told apart
mod doctor; //    what is broken
#[cfg(feature = "postgres")]
#[allow(dead_code, reason = "the store's tests use all of it")]
#[path = "../../../fanfold-store/tests/it/cluster.rs"]
mod cluster; //   a PostgreSQL server for as long as the tests run
#[cfg(feature = "postgres")]
mod server; //    sessions on it
mod pipe; //      JSON lines
mod mcp; //       tools for agents
mod memory; //    what is remembered
mod models; //    what is known of models
mod replay; //    recorded conversations
#[cfg(unix)]
mod clients; //   sessions that real clients write
mod yardstick; // the same figures from another program
#[cfg(unix)]
mod serve; //     the proxy as a program
mod settings; //  files, environment, flags
mod top; //       a proxy at a glance
mod watch; //     what a proxy tells of what passes, and what it never tells
mod people; //    what a person sees
