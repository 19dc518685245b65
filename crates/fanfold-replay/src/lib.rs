//! Replays recorded conversations through policies: what would have been sent, what it would have contained and cost.
//!
//! No model is called. At each recorded reply the policy makes the view that would have been sent. The reply itself
//! shows what it needed: the paths, identifiers, values and lines it uses that appeared earlier.

mod record; //      a recorded conversation
mod sources; //     file formats of recordings
mod content; //     what a conversation contains, and what replies use of it
mod prices; //      prices and cache rules of providers
mod sums; //        totals of one conversation
mod next_reply; //  the reply to be replayed next
mod originals; //   originals behind handles
mod validity; //    whether a provider accepts the messages
mod policy_run; //  one policy at one window
mod replay; //      one conversation, reply by reply
mod table; //       totals of many conversations

pub use content::atoms::{AtomClass, CommonKnowledge};
pub use prices::{
    Bill, CacheMatch, ChargedRequest, Cliff, CostMeter, Price, PriceChange, PriceLookup, PriceMatch,
    PriceSource, PriceTable, RequestCharge, RequestPiece,
};
pub use record::{Record, RecordError, ReportedUsage, sample, without_prefixes};
pub use replay::{DEFAULT_PRICE, ReplayOptions, ReplayOutcome, ReplayedFold, replay};
pub use sources::{
    ConversationOrigin, FileContents, FileKind, SourceConversation, detect_kind, read, read_whole,
};
pub use sums::{DISTANCES, ReplayTotals, ReplyTotals, share};
pub use table::{ReplayRow, Shares, rows};
