//! The stored data: message nodes, sessions that point at them, and batches of changes.

mod node; //    messages linked to their predecessors
mod session; // sessions and their events
mod batch; //   changes that are written atomically

pub use batch::{Batch, CommitSummary, NewEvent, NewMessage, Op};
pub use node::{BlobId, IdError, Node, NodeId, Role};
pub use session::{EndReason, EventRow, Millis, NewSession, Relation, SessionId, SessionRow, SessionUpdate};
