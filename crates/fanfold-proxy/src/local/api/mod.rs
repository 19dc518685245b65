//! An HTTP API of its own for programs: sessions, forks, folds, search, recall.
//!
//! Each route is a line of a table, of which both the router and its OpenAPI description are made, so that neither can say
//! what the other does not do.

mod route; //    what a route is
mod refused; //  why there is no answer
mod table; //    all routes
mod sessions; // sessions, their messages, folds and forks
mod find; //     search and recall
mod openapi; //  the description
mod work; //     a request from start to end
#[cfg(test)]
mod tests; //    what is described is what is done

use std::sync::Arc;

use axum::Router;
use fanfold_engine::Engine;

/// Gives the engine when a request needs it, or says why there is none.
pub type Engines = Arc<dyn Fn() -> Result<Arc<Engine>, String> + Send + Sync>;

/// Where the routes are.
pub const PATH: &str = "/fanfold/api";

/// The routes, below [`PATH`]. Who may ask is the caller's to check.
pub fn router(engines: Engines) -> Router {
    Router::new().nest(PATH, work::router(engines))
}
