//! The events of a session in the store, and which of them are in force.

pub(crate) mod message_styles; // cache marks and part lists of messages, stored apart from their text
pub(crate) mod body_frame; //     a request body without its messages
pub(crate) mod body_edits; //     edits of an encoded body, recorded with its hash
pub(crate) mod recall_offer; //   the recall tool or hint offered to the model
pub(crate) mod backoff; //        pauses of summary models
pub(crate) mod events; //         the events
pub(crate) mod originals; //      the JSON of an original
pub(crate) mod session_log; //    all events of a session, including inherited ones
pub(crate) mod undone; //         events cancelled by a restore or an overflow
