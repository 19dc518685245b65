//! The contract of the wire formats.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod contract; // properties of all dialects, on generated bodies
mod dialects; // the contract of a dialect, on samples of each
mod provider_rules; // the rules of each provider, by its documentation
mod cases; //    whole bodies and their folded forms, as examples
mod speed; //    time is linear in the bytes
mod refusals; // errors of providers for requests that are too long
mod replies; //  parsed replies, in chunks of any size
mod streams; //  generated replies in the documented form of each API
mod client_view; // a reply as its client sees it
mod recall_rounds; // replies with calls of the recall tool
mod summaries; // summary requests of clients
mod memory_scrubbing; // replies in which a model repeats its memory
