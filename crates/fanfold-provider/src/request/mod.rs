//! Requests to a provider.

pub(crate) mod prompt; //       bodies in each API style
#[cfg(feature = "client")]
pub(crate) mod http_request; // one request and its answer
pub(crate) mod retry; //        pauses between retries
