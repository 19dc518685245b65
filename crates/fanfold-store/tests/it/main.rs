//! What every store promises.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod words; //         short ways to write a batch
mod contract; //      one suite that every store passes
mod model; //         random batches give the same answers in every store
mod sqlite; //        what only a file can do wrong
mod search; //        what every store finds, and what nobody sees
mod search_words; //  every word finds its message
mod search_shapes; // the four answers
