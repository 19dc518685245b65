//! Routes that the proxy answers itself, all below `/fanfold/`.

pub(crate) mod local_routes;
pub mod api;
