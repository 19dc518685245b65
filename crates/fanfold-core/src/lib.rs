//! Fits a conversation into a token budget without losing a word of it.

mod tokens; //     what text costs
mod transcript; // what was said, exactly as it was said
mod handle; //     how an original is named
mod view; //       what will be sent

pub use handle::{Handle, HandleError};
pub use tokens::{Count, Frame, Tokens, Words, thousands};
pub use transcript::{Body, Call, CallId, Entry, EntryId, Media, Origin, Outcome, Prompt, Speaker, Step, Transcript, Turn};
pub use view::{Edit, Item, Place, View, Voice};
