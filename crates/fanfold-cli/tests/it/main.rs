//! Tests of the program from outside.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../examples/story/mod.rs"]
mod story; //     the conversation of the demo
mod sandbox; //   an empty home directory for each test
mod fold; //      fold files
mod summarise; // summaries by a model
mod recall; //    recall originals
mod sessions; //  stored sessions
mod user_mistakes; // wrong commands on stored sessions
mod kills; //     stores after killed processes
mod imports; //   sessions imported from files
mod relations; // relations of sessions, profiles, retention
mod doctor; //    damaged stores
#[path = "../../../fanfold-store/tests/it/small_disk.rs"]
mod small_disk; // a file system that tests fill
mod unwritable_stores; // full disks, read-only and broken stores
#[cfg(feature = "postgres")]
#[allow(dead_code, reason = "the store's tests use all of it")]
#[path = "../../../fanfold-store/tests/it/cluster.rs"]
mod cluster; //   a PostgreSQL server for the duration of the tests
#[cfg(feature = "postgres")]
mod server; //    sessions in PostgreSQL
mod pipe; //      JSON lines
mod mcp; //       tools for agents
mod memory; //    memory files and providers
mod models; //    context windows of models
mod replay; //    recorded conversations
#[cfg(unix)]
mod clients; //   sessions written by real clients
mod yardstick; // replay figures compared with another program
#[cfg(unix)]
mod serve; //     the proxy as a process
mod settings; //  files, environment, flags
mod top; //       the status of a proxy
mod observation; // log, metrics, status and spans of a proxy
mod terminal_output; // output for people
mod control_characters; // hostile text in that output
mod private_files; // permissions of written files
