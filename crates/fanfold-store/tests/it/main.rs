//! What every store promises.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod words; //         short ways to write a batch
mod search; //        what every store finds, and what nobody sees
mod search_words; //  every word finds its message
mod search_shapes; // the four answers
