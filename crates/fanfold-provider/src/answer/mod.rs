//! Reads the answer of a model while it arrives.

pub(crate) mod reader; //   the answer, however it is encoded
pub(crate) mod thinking; // removes thoughts from the text
