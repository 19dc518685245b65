//! HTTP in front of a model provider: folds what passes, and never makes a request worse.
//!
//! ```text
//! client --> route --> engine (a blocking thread, a deadline) --> upstream --> client
//!              |           | anything of ours fails
//!              +-----------+--------> the body as it came ------^
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod config; //       settings of a proxy
mod watched_body; // a response body with a callback for its bytes and its end
pub mod meter; //    counts requests: status, Prometheus, log lines, spans
mod admission; //    which clients may connect, and how much memory their bodies may use
mod receive; //      routes, headers and bodies of requests
mod prepare; //      what is sent instead of a body
mod send; //         calls to the provider
mod reply; //        the provider's answer on its way to the client
mod local; //        routes that the proxy answers itself
mod pipeline; //     a request from acceptance to the last byte
mod server; //       listener and shutdown

pub use admission::token::Token;
pub use config::{Config, Host, Limits};
pub use local::api;
pub use prepare::memory::Remember;
pub use prepare::prepared_body::Reason;
pub use prepare::recall_offer::Recall;
pub use send::upstream::{Upstream, UpstreamError, Upstreams};
pub use server::{Running, ServeError, serve};
