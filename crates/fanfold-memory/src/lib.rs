//! What is remembered from one session to the next: two small files that people can read and write as well, and at most
//! one provider outside.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod entries; //  what a file holds, and how it is changed: values in, values out
mod files; //    the files: locked, replaced as a whole, the last one kept
mod provider; // where a provider is, and how long it may take
mod fault; //    what can be wrong with it
mod plain; //    what a person said, without what programs put around it
mod guard; //    names of its tools
mod choose; //   which of them are used
mod terms; //    the words of a question that are worth looking for
mod found; //    what it found, as lines
mod bounded; //  HTTP with an end to what is read
mod program; //  a program that is started for it
mod mcp; //      one that speaks MCP
mod http; //     one with plain routes
mod server; //   whichever it is
mod turn; //     a turn, and what is recalled for it
mod talks; //    conversations that it was told of, until they end
mod deed; //     what happens, for whoever counts
mod shared; //   what is known, counted and told
mod worker; //   work in order, behind everybody's back
mod keeper; //   all of it through the life of a conversation

pub use choose::{ToolArgument, MemoryTool};
pub use deed::MemoryEvent;
pub use entries::{EntryChange, EntryError, apply_changes, entries, used_chars};
pub use fault::MemoryError;
pub use files::{MemoryFile, ChangeError, ChangeOutcome, MemoryFiles};
pub use guard::{NameConflict, reject_conflicting_names};
pub use keeper::{UnfinishedWork, MemoryClient, EventCallback};
pub use plain::user_text;
pub use provider::{ProviderKey, MemoryLimits, ProviderAddress, MemoryProvider, ToolSelection};
pub use server::ProviderCheck;
pub use turn::{PendingRecall, MemoryTurn};
