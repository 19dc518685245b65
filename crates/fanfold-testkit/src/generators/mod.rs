//! Test inputs from a seed.

mod words; //                 words that are hard to encode
pub mod bodies; //            request bodies and session files as JSON text, well-formed and hostile
pub mod conversations; //     conversations as entries of a transcript
pub mod growing_conversation; // a request that grows by one step at a time, built quickly
pub mod long_chat; //         a chat of any length about one task
pub mod request_sequences; // the successive requests of a conversation, valid by the rules of their API
pub mod tool_outputs; //      texts of each content kind
