//! What the client promises, over real sockets, against a provider that fails as it is told.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setting; //  a provider, and a client of it
mod answers; //  what is asked, and what is heard
mod classes; //  each class of faults, by a real exchange
mod clocks; //   each timeout
mod retries; //  when it is asked again, and when not
mod manners; //  servers that want to be asked differently
mod keys; //     keys are sent, and shown nowhere
mod windows; //  what servers say of their windows
