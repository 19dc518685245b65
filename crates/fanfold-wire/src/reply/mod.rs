//! Replies of providers: read, joined and scrubbed while they stream.
//!
//! ```text
//! bytes --sse--> events --dialect--> ParsedReply: usage, calls, stop reason
//! status, body --refusal--> too long, and by how much
//! bytes --rounds--> the client's reply, without recalls
//! bytes --reply_scrubber--> the same without repeated memory
//! ```

pub mod sse;
pub(crate) mod reader;
pub(crate) mod usage;
pub(crate) mod text;
mod error_text;
mod refusal;
pub(crate) mod rounds;
mod memory_scrubber;
mod reply_scrubber;

pub use crate::request::{
    HiddenRecalls, RECALL_TOOL, RecallRequest, accepts_recall_tool, add_recall_tool, insert_hidden_recalls,
    is_summary_request, recall_tool, remove_recall_tool,
};
pub use error_text::error_text;
pub use memory_scrubber::{Scrubber, scrub};
pub use reader::{ParsedReply, ReplyFailure, ReplyReader, ToolCall, Transport};
pub use refusal::{Cause, PromptFill, Refusal, TooMuchOutput, refusal, refusal_in_reply, too_much_output};
pub use reply_scrubber::ReplyScrubber;
pub use rounds::{ReplyJoiner, RoundEffect};
pub use text::{ReplyText, TextReader};
pub use usage::Usage;
