//! Memory across sessions: two small files that people can edit, and at most one external memory provider.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod files; //        MEMORY.md and USER.md
mod conversation; // turns, user text, idle conversations
mod provider; //     connections to a memory provider
mod client; //       recalls before a turn, writes after it

pub use client::event::MemoryEvent;
pub use client::{EventCallback, MemoryClient, UnfinishedWork};
pub use conversation::pending_recall::PendingRecall;
pub use conversation::turn::MemoryTurn;
pub use files::entries::{EntryChange, EntryError, entries, used_chars};
pub use files::{ChangeError, ChangeOutcome, MemoryFile, MemoryFiles};
pub use provider::config::{MemoryKey, MemoryLimits, MemoryProvider, ProviderAddress, ToolSelection};
pub use provider::connection::ProviderCheck;
pub use provider::error::MemoryError;
pub use provider::tool_names::NameConflict;
