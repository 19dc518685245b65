//! Folds LLM conversations so that they fit a model's window, and recalls what was folded, byte for byte.
//!
//! A conversation is the body of a request in any supported provider format, or a bare list of messages. Long tool
//! results and old steps are replaced by short stubs. Each stub has a *handle* that recalls the original.
//!
//! ```
//! # fn main() -> Result<(), fanfold::Error> {
//! use fanfold::{Options, fold, recall};
//!
//! # let log = (0..2_000).map(|i| format!("line {i}: nothing unusual\\n")).collect::<String>();
//! # let body = format!(
//! #     r#"{{"model":"gpt-5","messages":[
//! #         {{"role":"user","content":"read the log"}},
//! #         {{"role":"assistant","content":null,"tool_calls":[
//! #             {{"id":"1","type":"function","function":{{"name":"read","arguments":"{{}}"}}}}]}},
//! #         {{"role":"tool","tool_call_id":"1","content":"{log}"}},
//! #         {{"role":"assistant","content":"It is quiet."}},
//! #         {{"role":"user","content":"thanks, what is next?"}}]}}"#
//! # );
//! let options = Options { window: Some(4_000), ..Options::default() };
//! let folded = fold(&body, &options)?;
//! assert!(folded.tokens < folded.tokens_before && folded.body.len() < body.len());
//!
//! let original = recall(&body, &folded.handles[0], &options)?;
//! assert!(original.contains("nothing unusual"));
//! # Ok(())
//! # }
//! ```
//!
//! Use a [`Conversation`] to append messages one by one, and a [`Store`] to keep conversations in a database and
//! recall their originals later, from any process.
//!
//! # Features
//!
//! - `outline` (default): source files are outlined by parsers of their languages, as in the program `fanfold`.
//! - `postgres`: [`Store::open`] accepts a PostgreSQL URL.
//! - `tokenizer-json`: enables that feature of `fanfold-tokens`, for an [engine](EngineFactory) with its own counter.

mod conversation; // one conversation in memory
mod options; //      options, and the terms derived from them
mod store; //        conversations in a database

pub use conversation::{Conversation, Folded};
pub use fanfold_core::EngineFactory;
pub use options::Options;
pub use store::Store;

/// Folds the body of a request. A body that fits is returned unchanged.
pub fn fold(body: &str, options: &Options) -> Result<Folded, Error> {
    Conversation::new(body, options)?.view()
}

/// The original behind a handle of a body that was folded with the same options. `body` is the body before the
/// fold.
pub fn recall(body: &str, handle: &str, options: &Options) -> Result<String, Error> {
    let mut conversation = Conversation::new(body, options)?;
    conversation.view()?;
    conversation.recall(handle)
}

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The body or message is not a conversation in a supported format.
    #[error("the body is not a conversation: {0}")]
    InvalidBody(String),
    /// There is no policy of this name.
    #[error("there is no policy `{0}`; the policies are {list}", list = fanfold_core::Policy::NAMES.join(", "))]
    UnknownPolicy(String),
    /// The conversation does not fit the window even when folded.
    #[error("the smallest view has {smallest} tokens, and the room is {room} tokens: {remedy}")]
    Overflow {
        /// The size of the smallest view, in tokens.
        smallest: u64,
        /// The part of the window that a request may use, in tokens.
        room: u64,
        /// What to do.
        remedy: String,
    },
    /// No fold has the handle.
    #[error("no original has the handle `{0}`")]
    UnknownHandle(String),
    /// The store failed.
    #[error("the store failed: {0}")]
    Store(String),
    /// The conversation was not folded for another reason.
    #[error("the conversation was not folded: {0}")]
    NotFolded(String),
}
