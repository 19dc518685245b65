//! An HTTP API for programs: sessions, forks, folds, search, recall.
//!
//! The router and the OpenAPI description are both derived from one table of routes.

mod route; //     a row of the table of routes
mod api_error; // errors with a status and a hint
mod table; //     all routes
mod sessions; //  sessions, their messages, folds and forks
mod find; //      search and recall
mod openapi; //   the description
mod handler; //   runs a route on a blocking thread
#[cfg(test)]
mod tests;

use std::sync::Arc;

use axum::Router;
use fanfold_engine::SessionEngine;

/// Returns the engine, or an error message.
pub type Engines = Arc<dyn Fn() -> Result<Arc<SessionEngine>, String> + Send + Sync>;

/// Path prefix of the routes.
pub const PATH: &str = "/fanfold/api";

/// The routes, below [`PATH`]. The caller is responsible for access control.
pub fn router(engines: Engines) -> Router {
    Router::new().nest(PATH, handler::router(engines))
}
