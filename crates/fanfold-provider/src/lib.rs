//! HTTP client for model providers: sends a prompt, streams the answer, classifies errors.
//!
//! ```text
//! Prompt --body--> POST --bytes--> AnswerReader --> ModelAnswer
//!                    |                  |
//!                    +---- classify <---+ any failure --> ProviderError: class, message, hint
//!                            |
//!                            +--> retry after a pause or with other request options, within one deadline
//! ```
//!
//! A [`Client`] talks to one model at one [`Endpoint`], OpenAI-compatible or Anthropic, hosted or local. It always asks
//! for a stream, so that a silent provider can be told from a slow one. Keys are read when they are needed and never
//! appear in errors, log lines or `Debug` output.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]
#![cfg_attr(not(feature = "client"), allow(dead_code, reason = "only the client uses it"))]

mod endpoint; // address, API style, key, timeouts
mod error; //    error classes and how to recognise them
mod answer; //   reads an answer while it arrives
mod request; //  bodies, HTTP requests, retries
#[cfg(feature = "client")]
mod client; //   ties them together
#[cfg(feature = "client")]
mod window; //   asks a server for its context window

pub use answer::reader::ModelAnswer;
#[cfg(feature = "client")]
pub use client::Client;
pub use endpoint::key::{ForwardedKey, KeySource};
#[cfg(feature = "client")]
pub use endpoint::url::AddressError;
pub use endpoint::{Endpoint, Style, Timeouts};
pub use error::{ErrorClass, ProviderError, RequestTarget};
pub use request::prompt::Prompt;
#[cfg(feature = "client")]
pub use window::{ServerWindow, WindowKind};
