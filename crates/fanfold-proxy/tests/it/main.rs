//! The contract of the proxy, tested over real sockets on both sides.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../../fanfold-engine/examples/other_engine/newest.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod newest; //           a second engine
mod setting; //          a proxy, its store, and a scripted provider
mod folds; //            bodies that are sent folded or whole
mod rebuilt_requests; // recorded requests, compared with the bodies that the provider received
mod harmless; //         requests are forwarded if fanfold fails
mod summary_jobs; //     summaries in the background
mod recalls; //          originals recalled by the model
mod hidden_recalls; //   recalls in the same answer as calls of the client
mod refusals; //         requests that were too long
mod provider_quirks; //  rules of providers
mod window_probe; //     windows probed from model servers
mod alive; //            providers that keep a connection alive while they think
mod faults; //           providers and clients that fail
mod tls; //              providers behind TLS
mod memory; //           memory, and memory providers that fail
mod subagents; //        agents that start others
mod trust; //            tokens and web pages
mod crowds; //           limits under load
mod metering; //         sessions in the status
