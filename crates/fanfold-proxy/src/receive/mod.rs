//! Receiving: route, headers and body of a request.

pub(crate) mod route;
pub(crate) mod headers;
pub(crate) mod body;
pub(crate) mod encoding;
pub(crate) mod model;
pub(crate) mod unpack;
