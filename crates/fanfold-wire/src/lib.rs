//! Provider formats to transcripts, and views back to bytes.
//!
//! ```text
//! body --frame--> messages --chat | responses | anthropic--> changes of a transcript
//! view --outgoing--> groups of portions --the same three--> messages --frame--> body
//! ```
//!
//! A [`Conversation`] keeps every message's JSON as it came. What is not folded leaves as those bytes; what is folded
//! is spliced into them; a request in which nothing is folded leaves byte for byte, however odd it is.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod json; //         JSON taken apart, as slices of its text
mod splice; //       places of a text changed, the rest left alone
mod format; //       the formats, and how they are told apart
mod frame; //        the body around the list of messages
mod dress; //        cache marks, and the way a single text is written, set apart
mod incoming; //     a body whose messages have been found
mod resumed; //     the same where it begins as one that is held
mod change; //       what arriving messages do to a transcript, and what was odd about them
mod pairing; //      which call a result belongs to
mod book; //         which entry each portion of each message went into
mod content; //      contents: strings or parts, text and media
mod textcalls; //    tool calls that a model wrote as text
mod textresults; //  and the results that came back as text
mod chat; //         Chat Completions, ShareGPT and Hermes sessions
mod responses; //    Responses
mod anthropic; //    Anthropic Messages
mod outgoing; //     a view as portions of messages to send
mod memo; //         what was made of messages before
mod conversation; // all of it together
mod alternating; //  the same where no role may speak twice in a row
mod recollect; //    what was recalled from memory, at the end of a request
pub mod reply; //    what comes back

pub use alternating::alternating;
pub use change::{Change, Oddity, Repair};
pub use conversation::Conversation;
pub use dress::{Dress, dress, same_system, undress};
pub use format::{Format, FormatError, detect};
pub use frame::DecodeError;
pub use incoming::Incoming;
pub use memo::Memo;
pub use recollect::{FENCE, FENCE_END, fence, may_recollect, prompts, with_memory};
