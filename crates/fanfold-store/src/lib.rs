//! Durable sessions: every message is stored once, in chains that forks share.
//!
//! ```text
//! message <- message <- message <- message        session "a" points here
//!                          ^------- message        session "b", forked from "a", points here
//! ```
//!
//! A node is a message and a link to its predecessor; its id is the hash of both. A session points at its newest
//! node, so a fork, a rotation or a rewind moves a pointer and copies nothing. Everything else about a session is
//! an event. [`Store::commit`] is the only write path: a [`Batch`] is applied completely or not at all, and is
//! durable when `commit` returns.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod model; //    nodes, sessions, batches
mod store; //    the trait that every store implements
mod readable_sessions; // lists sessions even if some are corrupt
mod schema; //   the SQL schema in numbered steps
mod database; // the code that SQLite and PostgreSQL share
mod doctor; //   consistency checks and repairs
mod sqlite; //   a store in one file or in memory
#[cfg(feature = "postgres")]
mod postgres; // a store on a server
mod fallback; // a store that continues in memory while its database fails
mod open; //     opens a store by its address

pub mod search; // full text search over all sessions

pub use doctor::{CheckMode, Finding, RepairStatus};
pub use fallback::{FallbackStore, Outage, Restored, SessionCopy};
pub use model::{
    Batch, BlobId, CommitSummary, EndReason, EventRow, IdError, Millis, NewEvent, NewMessage, NewSession,
    Node, NodeId, Op, Relation, Role, SessionId, SessionRow, SessionUpdate,
};
pub use open::{OpenMode, open, open_to_check, store_file};
pub use readable_sessions::{ReadableSessions, readable_sessions};
pub use sqlite::{BusyPolicy, SqliteStore};
pub use store::{LockOutcome, SessionFilter, SessionLock, Store, StoreError, StoreSize};
