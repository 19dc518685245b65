//! Checks that are independent of the code under test.

pub mod api_rules; //    the documented rules of each API for a request, each with a name
pub mod engine; //       a suite for every implementation of `fanfold_core::Engine`
pub mod key_details; //  errors, paths and ids of a text
pub mod message_list; // the order and pairing of the messages in a body
