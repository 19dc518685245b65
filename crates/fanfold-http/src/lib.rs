//! An HTTP server that a slow or hostile client cannot take from the others, for the proxy and the MCP server.
//!
//! ```text
//! socket -> connection limit -> timeouts and frame limit -> handler: token, host name, origin -> response
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod token; //         the access token
mod web_access; //    web pages and host names
mod observed_body; // bodies that report their end
mod flushed_body; //  errors of a body wait until the bytes before them are sent
mod connections; //   the connection limit
mod frame_limit; //   floods of HTTP/2 control frames
mod client_io; //     clients that stop reading, or flood
mod server; //        accepts and serves connections

pub use connections::ActiveRequest;
pub use observed_body::{BodyEnd, BodyObserver, ObservedBody};
pub use server::{Server, ServerLimits, bind};
pub use token::{TOKEN_HEADER, Token};
pub use web_access::{AccessRefusal, WebAccess};
