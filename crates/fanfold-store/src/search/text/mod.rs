//! The searchable text of a message, its words, and excerpts of it.

pub(crate) mod words; //        splits a text into words
pub(crate) mod json; //         parses JSON that may contain cut characters
pub(crate) mod message_text; // the text of a message in any format
pub(crate) mod snippet; //      an excerpt around the hits
