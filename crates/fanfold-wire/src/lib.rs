//! Wire formats of providers: bytes to transcripts, and views back to bytes.
//!
//! ```text
//! body --frame--> messages --dialect--> changes of a transcript
//! view --outgoing--> groups of portions --dialect--> messages --frame--> body
//! ```
//!
//! A [`Conversation`] keeps the JSON of every message unchanged. Stubs are spliced into that JSON; a request without
//! folds is sent byte for byte, valid or not.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod json; //         a parser that returns slices of its input
mod content; //      contents of messages: text, parts, media, calls and results as text
mod conversation; // the messages of one client: decoding, encoding, pairing
mod body; //         the body around the message list; cache markers
mod dialects; //     one folder per dialect
mod request; //      edits of requests: recall tool, memory, roles
pub mod reply; //    replies of providers

pub use body::{DecodeError, Incoming, MessageStyle, restore_style, same_system, strip_style};
pub use conversation::change::{Change, Oddity, Repair};
pub use conversation::{Conversation, Memo};
pub use dialects::{Format, FormatError, Headers, KeyHeader, PromptRequest, Provider, detect, is_version};
pub use request::{
    EditFault, FENCE, FENCE_END, accepts_memory_block, alternate_roles, append_memory_block, check_edits,
    fence, user_prompts,
};
