//! Conversations as a memory provider sees them.

pub(crate) mod user_text; //      the words of the user in a message
pub(crate) mod turn; //           the current turn of a conversation
pub(crate) mod pending_recall; // the recalled text of a turn, while it is awaited and afterwards
pub(crate) mod idle; //           detects that conversations ended
