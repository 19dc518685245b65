//! Reads the answer of a model while it arrives.

pub(crate) mod reader; //   the answer as a stream or as one JSON body
pub(crate) mod thinking; // removes thoughts from the text
