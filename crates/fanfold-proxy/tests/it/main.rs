//! What the proxy promises, over real sockets on both sides.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setting; //  a proxy, its store, and a provider behind it
mod folds; //    what goes through, folded or not
mod harmless; // whatever fails here, the request goes out
mod errands; //  summaries beside the turns
mod recalls; //  folds that the model opens
mod beside; //   folds that it opens beside calls of the client's
mod refusals; // requests that were too long
mod taken; //    requests that a provider takes in another form
mod asked; //    windows that servers tell
mod alive; //    providers that think, and say so
mod faults; //   providers and clients that fail
mod tls; //      providers behind TLS
mod memory; //   what is remembered, and providers of it that fail
mod crew; //     agents that work for others
mod trust; //    who may ask
mod crowds; //   more of everything than there is room for
mod watched; //  what people see of sessions
