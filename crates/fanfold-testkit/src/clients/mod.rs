//! Programs that send requests.

pub mod http; //     an HTTP client that measures times
#[cfg(unix)]
pub mod programs; // real coding agents, installed from npm
