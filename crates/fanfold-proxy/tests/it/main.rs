//! What the proxy promises, over real sockets on both sides.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setting; //  a proxy, its store, and a provider behind it
mod folds; //    what goes through, folded or not
mod harmless; // whatever fails here, the request goes out
mod errands; //  summaries beside the turns
mod recalls; //  folds that the model opens
mod refusals; // requests that were too long
mod faults; //   providers and clients that fail
mod trust; //    who may ask
