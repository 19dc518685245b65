//! What comes back from a provider: read as it passes, and never held up by the reading.
//!
//! ```text
//! bytes --sse--> events --chat | responses | anthropic--> what was said: usage, calls, the end
//! status, body --words--> refusal: too long, by how much
//! bytes --held--> what the client sees, without the calls that are answered here
//! bytes --scrubbed--> the same without memory that a model repeats
//! ```

pub mod sse; //   a stream of bytes to events
mod usage; //     what a request cost, in every provider's way of saying it
mod said; //      what an answer says
mod chat; //      of Chat Completions
mod responses; // of Responses
mod anthropic; // of Anthropic Messages
mod spoken; //    its words
mod words; //     the words of an error, whatever it is wrapped in
mod refusal; //   refusals for length
mod tool; //      the recall tool, offered and called
mod held; //      answers in which it is called
mod beside; //    recalls that a client was not shown, put where they were made
mod summary; //   requests of a client for a summary
mod scrub; //     fenced memory taken out of a text
mod scrubbed; //  and out of an answer

pub use beside::{Beside, with_recalls};
pub use held::{Held, Out};
pub use refusal::{Cause, Filled, Refusal, TooMuchOutput, refusal, refusal_in_answer, too_much_output};
pub use said::{Called, Carried, Failure, Reply, Said};
pub use scrub::{Scrubber, scrub};
pub use scrubbed::Scrubbed;
pub use spoken::{Heard, Spoken};
pub use summary::is_summary_request;
pub(crate) use tool::wants_structure;
pub use tool::{RECALL_TOOL, Wanted, may_offer_recall, recall_tool, with_recall_tool, without_recall_tool};
pub use usage::Usage;
pub use words::error_words;
