//! The events of a session as the store keeps them, and which of them are in force.

pub(crate) mod message_styles; // cache marks and part lists of messages, stored apart from their text
pub(crate) mod body_frame; //     a request body without its messages
pub(crate) mod notes; //          the events
pub(crate) mod originals; //      the JSON of what a handle opens
pub(crate) mod session_log; //    all events of a session, inherited ones included
pub(crate) mod undone; //         events cancelled by a restore or an overflow
pub(crate) mod fold_record; //    the events written for a fold
