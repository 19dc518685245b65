//! Runs a route: arguments are checked, and the function runs on a blocking thread within a deadline.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::Value;

use super::Engines;
use super::api_error::ApiError;
use super::route::{Method, ParameterLocation, QueryArguments, ResponseShape, Route};
use super::table::ROUTES;

const MAX_BODY_BYTES: usize = 1 << 20;

const DEADLINE: Duration = Duration::from_secs(20);

pub(super) fn router(engines: Engines) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        let filter = match route.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
        };
        let handler = move |State(engines): State<Engines>,
                            Path(path): Path<Vec<(String, String)>>,
                            Query(query): Query<Vec<(String, String)>>,
                            body: Bytes| answer(route, engines, path, query, body);
        router = router.route(route.path, on(filter, handler));
    }
    let no_route = async || {
        let hint = "/fanfold/api/openapi.json lists all routes";
        error_response(&ApiError::not_found("there is no such route", hint))
    };
    router.fallback(no_route).layer(DefaultBodyLimit::max(MAX_BODY_BYTES)).with_state(engines)
}

async fn answer(
    route: &'static Route,
    engines: Engines,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Bytes,
) -> Response {
    let arguments = match arguments(route, path, query, &body) {
        Ok(arguments) => arguments,
        Err(error) => return error_response(&error),
    };
    let work = tokio::task::spawn_blocking(move || {
        let engine = engines().map_err(|why| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                why,
                "/fanfold/ready reports when the store works again",
            )
        })?;
        (route.run)(&engine, &arguments)
    });
    let done = match tokio::time::timeout(DEADLINE, work).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{} failed", route.name),
            "this is a bug in fanfold; please report it",
        )),
        Err(_) => Err(ApiError::new(
            StatusCode::GATEWAY_TIMEOUT,
            format!("{} took longer than {} s", route.name, DEADLINE.as_secs()),
            "request less, or try again later: the store may be busy",
        )),
    };
    match done {
        Ok(Value::String(text)) if route.answer == ResponseShape::Text => {
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
        Ok(value) => json(StatusCode::OK, &value),
        Err(error) => error_response(&error),
    }
}

fn arguments(
    route: &Route,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: &[u8],
) -> Result<QueryArguments, ApiError> {
    let mut given: Vec<(ParameterLocation, String, Value)> = Vec::new();
    given.extend(path.into_iter().map(|(name, value)| (ParameterLocation::Path, name, Value::String(value))));
    given.extend(
        query.into_iter().map(|(name, value)| (ParameterLocation::Query, name, Value::String(value))),
    );
    if route.method == Method::Post && !body.trim_ascii().is_empty() {
        let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
            return Err(ApiError::bad_request("the body is not a JSON object", "send one, or nothing"));
        };
        given.extend(fields.into_iter().map(|(name, value)| (ParameterLocation::Body, name, value)));
    }
    QueryArguments::new(route, given)
}

fn error_response(error: &ApiError) -> Response {
    json(error.status, &error.json())
}

fn json(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{value}\n")).into_response()
}
