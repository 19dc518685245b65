//! One request from start to end, effects in order.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod terms; //  what a conversation is folded by
mod follow; // a conversation and its session, followed together

pub use follow::{Followed, Sizes, Wishes, decode, messages_of};
pub use terms::Terms;
