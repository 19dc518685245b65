//! The checks of the fuzz targets, as functions of the input, so that a crash can be debugged without the fuzzer.
//!
//! The first byte or two of an input select settings; the rest is the content.

pub mod settings; // settings from one byte
pub mod body; //     request bodies in each format
pub mod notation; // the text notation
pub mod texts; //    condensed texts and lines about calls
pub mod reply; //    answers of providers
pub mod refusal; //  errors about the length of a request
pub mod mutate; //   mutates JSON and keeps it valid
