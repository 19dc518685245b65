//! HTTP to a model provider: send, stream, classify errors.
//!
//! ```text
//! Prompt --body--> POST --bytes--> hearing --> Answer
//!                    |                |
//!                    +--- classify <--+ whatever goes wrong --> Fault: its class, its words, what to do
//!                            |
//!                            +--> again, later or asked in another way, within one deadline
//! ```
//!
//! A [`Client`] asks one model of one [`Endpoint`], OpenAI-compatible or Anthropic, hosted or local. It always streams,
//! so that a provider that has gone silent is told from one that is slow. Keys are read when they are needed and stand
//! in no error, no log line and no `Debug`.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod endpoint; // who is asked, and how long one waits
mod route; //    addresses as people write them
mod key; //      keys, from the environment or a command
mod fault; //    what went wrong
mod phrases; //  the words by which providers say so
mod classify; // an answer that is an error
mod veil; //     words without secrets in them
mod prompt; //   what is asked, as each style writes it
mod thoughts; // what a model thinks aloud, left out
mod hearing; //  an answer as it comes
mod again; //    whether to ask again, and when
mod exchange; // one request and its answer
mod client; //   all of it together
mod window; //   how long a prompt a server takes

pub use client::Client;
pub use endpoint::{Endpoint, Style, Timeouts};
pub use fault::{RequestTarget, ErrorClass, ProviderError};
pub use hearing::ModelAnswer;
pub use key::{ForwardedKey, KeySource};
pub use prompt::Prompt;
pub use route::AddressError;
pub use window::{ServerWindow, WindowKind};
