//! What each fuzz target checks, as functions of its input, so that a crash can be looked at without the fuzzer.
//!
//! The first byte of an input chooses how it is folded; the rest is what came in.

pub mod choice; //   how it is folded, from one byte
pub mod body; //     a request body in one of the formats
pub mod notation; // the text notation
pub mod texts; //    any text, condensed and told as a deed
pub mod reply; //    what comes back from a provider
pub mod refusal; //  errors, read for a refusal for length
pub mod mutate; //   changes JSON so that it stays JSON
