//! Export and import of sessions.

pub(crate) mod opening_words; // a user's words without agent scaffolding
pub(crate) mod export; //        a session as one line of JSON
pub(crate) mod duplicates; //    imported messages that are already stored
pub(crate) mod import; //        sessions and conversations from elsewhere
