//! Admission: connection limit, access token, memory for bodies, and the timeout for clients that stop reading.

pub(crate) mod token;
pub(crate) mod connections;
pub(crate) mod body_quota;
pub(crate) mod write_timeout;
