//! The contract of the wire formats.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod contract; // properties of all dialects, on generated bodies
mod dialects; // the contract of a dialect, on samples of each
mod valid; //    what each provider accepts, by its documentation
mod cases; //    whole bodies, by eye
mod speed; //    time that grows with the bytes and not faster
mod refusals; // what providers say of a request that is too long
mod replies; //  what answers say, however they are split
mod streams; //  answers as each API documents them
mod seen; //     what a client may see of an answer
mod held; //     answers in which the recall tool is called
mod summaries; // requests of a client for a summary
mod scrubbed; // answers in which a model repeats its memory
