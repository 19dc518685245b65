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

mod endpoint; // address, API style, key, timeouts
mod error; //    error classes and how to recognise them
mod answer; //   reads an answer while it arrives
mod request; //  bodies, HTTP requests, retries
mod client; //   ties them together
mod window; //   asks a server for its context window

pub use answer::reader::ModelAnswer;
pub use client::Client;
pub use endpoint::key::{ForwardedKey, KeySource};
pub use endpoint::url::AddressError;
pub use endpoint::{Endpoint, Style, Timeouts};
pub use error::{ErrorClass, ProviderError, RequestTarget};
pub use request::prompt::Prompt;
pub use window::{ServerWindow, WindowKind};
