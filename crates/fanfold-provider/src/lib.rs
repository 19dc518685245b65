//! HTTP client for model providers: sends a prompt, reads the answer, classifies errors.
//!
//! ```text
//! Prompt --body--> POST --bytes--> AnswerReader --> ModelAnswer
//!                    |                  |
//!                    +---- classify <---+ any failure --> ProviderError: class, message, hint
//!                            |
//!                            +--> retry after a pause or with other request options, within one deadline
//! ```
//!
//! A [`ModelClient`] talks to one model at one [`Endpoint`], OpenAI-compatible or Anthropic, hosted or local. It always
//! requests a stream, so that a silent provider can be distinguished from a slow one. Keys are read on use and never
//! appear in errors, log lines or `Debug` output.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]
#![cfg_attr(not(feature = "client"), allow(dead_code, reason = "only the client uses it"))]

mod endpoint; // provider, address, key, timeouts
mod error; //    error classes and how to recognise them
mod answer; //   reads an answer while it arrives
mod request; //  bodies, HTTP requests, retries
#[cfg(feature = "client")]
mod client; //   ties them together
#[cfg(feature = "client")]
mod window; //   probes a server for its context window

pub use answer::reader::ModelAnswer;
#[cfg(feature = "client")]
pub use client::{ModelClient, install_tls};
pub use endpoint::key::{ForwardedKey, KeySource};
#[cfg(feature = "client")]
pub use endpoint::url::AddressError;
pub use endpoint::{Endpoint, Timeouts};
pub use error::{ErrorClass, ProviderError, RequestTarget};
pub use request::prompt::ModelPrompt;
#[cfg(feature = "client")]
pub use window::{ServerWindow, WindowKind};
