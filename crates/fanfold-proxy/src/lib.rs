//! HTTP in front of a model provider: folds what passes, and never makes a request worse.
//!
//! ```text
//! client --> route --> engine (a blocking thread, a deadline) --> upstream --> client
//!              |           | anything of ours fails
//!              +-----------+--------> the body as it came ------^
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod config; //   what a proxy is told
mod upstream; // where requests go, and how
mod headers; //  which headers go on
mod route; //    which requests are folded
mod encoding; // packed bodies
mod shelf; //    how many bytes of bodies are held at once
mod arrival; //  a body read whole, up to a limit
mod desk; //     the engine on a store that may come and go
mod made; //     how a body leaves, and why
mod model; //    the model that a body names
mod windows; //  windows that providers told
mod asked; //    windows that servers are asked for
mod recall; //   how a model opens folds
mod remember; // memory for the conversations that pass
mod errands; //  summaries written beside the turns
mod crew; //     whose work a conversation is
mod waiting; //  recalls that a provider waits for
mod fold; //     a body folded, within a deadline
mod reading; //  a body unpacked and looked at, within the same
pub mod meter; // what passes through, counted
mod passing; //  an answer on its way to the client
mod opening; //  the beginning of an answer, looked at before it goes on
mod call; //     a call upstream
mod taken; //    what a provider takes of what is made here
mod rounds; //   an answer in which the model opens folds
mod converse; // a conversation sent, and sent again if it was too long
mod exchange; // one request from start to end
mod trust; //    who may ask
pub mod api; //  sessions for programs
mod own; //      our own routes, and words of ours to a client
mod stall; //    clients that do not read
mod door; //     who is let in, and who goes when it is full
mod server; //   listening, and ending in good order

pub use config::{Config, Host, Limits};
pub use made::Reason;
pub use recall::Recall;
pub use remember::Remember;
pub use route::Style;
pub use server::{Running, ServeError, serve};
pub use trust::Token;
pub use upstream::{Upstream, UpstreamError, Upstreams};
