//! HTTP in front of a model provider: folds conversations, and sends a request unchanged if anything fails.
//!
//! ```text
//! client --> admission --> receive --> prepare --> send --> reply --> client
//!                             |                     ^
//!                             +-- bypass: unchanged-+
//! ```
//!
//! [`pipeline`] has the stages in order. Each takes a value and returns one.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod config; //        settings
mod outcome; //       folded, whole, or unchanged for a reason
mod error_reply; //   errors of the proxy itself
mod reconnecting_engine; // the engine on a store that may be replaced
pub mod meter; //     counters, status, logs and spans
mod admission; //     who may connect, and how much is held in memory
mod receive; //       route, headers and body of a request
mod prepare; //       the body to send
mod send; //          calls to the provider, with retries
mod reply; //         the answer on its way to the client
mod local; //         routes that the proxy answers itself
mod shared; //        state shared by all requests
mod pipeline; //      one request through all stages
mod server; //        start and shutdown

pub use config::{Config, Host, Limits};
pub use fanfold_http::{Token, WebAccess};
pub use local::api;
pub use outcome::{BypassReason, ProxyOutcome};
pub use prepare::recall_offer::Recall;
pub use receive::turn_memory::ProxyMemory;
pub use receive::upstream::{Upstream, UpstreamError, Upstreams};
pub use server::{Running, ServeError, serve};
