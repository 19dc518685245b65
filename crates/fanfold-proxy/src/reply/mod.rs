//! Replying: the answer goes to the client, without the recalls that the proxy serves itself.

pub(crate) mod recall_rounds;
