//! Sending: a prepared body goes to the provider, again in another form if it is refused.

pub(crate) mod upstream;
pub(crate) mod call;
pub(crate) mod response_start;
pub(crate) mod provider_quirks;
pub(crate) mod conversation;
