//! Sessions that never lose a word: every message once, in a chain that forks share.
//!
//! ```text
//! message <- message <- message <- message        session "a" points here
//!                          ^------- message        session "b", forked from "a", points here
//! ```
//!
//! A node is a message behind another one; its id is the hash of both. A session points at its newest node, so a fork,
//! a rotation and a rewind move a pointer and copy nothing. Whatever else happens to a session is an event of it.
//! Everything is written by [`Store::commit`]: a [`Batch`] is there as a whole or not at all, and durable when
//! it returns.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod chain; //   messages behind one another
mod session; // who points where, and why
mod batch; //   what is written at once
mod store; //   what every store does
mod readable; // sessions beside broken ones
mod memory; //  the store that forgets
mod sql; //     the little that is asked of a database
mod schema; //  how its tables are laid out
mod tables; //  what is read from them and written to them
mod lanes; //   messages read along their lanes
mod commit; //  a batch, written
mod locks; //   who may fold
mod marks; //   numbers under names
mod sweep; //   what no session leads to, removed
mod doctor; //  is everything there, and as it was written?
mod by_tables; // what is answered by them in the same way everywhere
mod sqlite; //  a store in one file
#[cfg(feature = "postgres")]
mod postgres; // a store on a server
mod open; //    a store by its address

pub mod search; // what was said, by words, place and session

pub use batch::{Batch, SessionChange, CommitSummary, NewEvent, NewMessage, NewSession, Op};
pub use chain::{BlobId, IdError, Node, NodeId, Role, role_of};
pub use doctor::{CheckMode, RepairStatus, Finding};
pub use memory::MemoryStore;
pub use open::{OpenMode, open, store_file};
#[cfg(feature = "postgres")]
pub use postgres::PostgresStore;
pub use readable::{ReadableSessions, readable_sessions};
pub use session::{EndReason, EventRow, Millis, Relation, SessionId, SessionRow};
pub use sqlite::{BusyPolicy, SqliteStore};
pub use store::{SessionFilter, LockOutcome, SessionLock, StoreSize, Store, StoreError};
