//! A request from start to end: what was said is taken apart, the work is done on a blocking thread within a deadline.

use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, on};
use serde_json::Value;

use super::Engines;
use super::refused::Refused;
use super::route::{Answer, Asked, Method, Place, Route};
use super::table::ROUTES;

/// A request with a longer body is refused.
const LONGEST_BODY: usize = 1 << 20;

/// A request that takes longer is answered by an error.
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
    let nowhere = async || {
        let hint = "the description at /fanfold/api/openapi.json names all that there is";
        refuse(&Refused::missing("there is no such route", hint))
    };
    router.fallback(nowhere).layer(DefaultBodyLimit::max(LONGEST_BODY)).with_state(engines)
}

async fn answer(
    route: &'static Route,
    engines: Engines,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: Bytes,
) -> Response {
    let asked = match asked(route, path, query, &body) {
        Ok(asked) => asked,
        Err(refused) => return refuse(&refused),
    };
    let work = tokio::task::spawn_blocking(move || {
        let engine = engines().map_err(|why| {
            Refused::new(StatusCode::SERVICE_UNAVAILABLE, why, "/fanfold/ready tells when the store is back")
        })?;
        (route.run)(&engine, &asked)
    });
    let done = match tokio::time::timeout(DEADLINE, work).await {
        Ok(Ok(done)) => done,
        Ok(Err(_)) => Err(Refused::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{} failed", route.name),
            "this is a bug of fanfold's; please report it",
        )),
        Err(_) => Err(Refused::new(
            StatusCode::GATEWAY_TIMEOUT,
            format!("{} took longer than {} s", route.name, DEADLINE.as_secs()),
            "ask for less, or try again later: the store may be busy",
        )),
    };
    match done {
        Ok(Value::String(text)) if route.answer == Answer::Text => {
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
        Ok(value) => json(StatusCode::OK, &value),
        Err(refused) => refuse(&refused),
    }
}

fn asked(
    route: &Route,
    path: Vec<(String, String)>,
    query: Vec<(String, String)>,
    body: &[u8],
) -> Result<Asked, Refused> {
    let mut said: Vec<(Place, String, Value)> = Vec::new();
    said.extend(path.into_iter().map(|(name, value)| (Place::Path, name, Value::String(value))));
    said.extend(query.into_iter().map(|(name, value)| (Place::Query, name, Value::String(value))));
    if route.method == Method::Post && !body.trim_ascii().is_empty() {
        let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
            return Err(Refused::wrong("the body is no JSON object", "send one, or nothing"));
        };
        said.extend(fields.into_iter().map(|(name, value)| (Place::Body, name, value)));
    }
    Asked::new(route, said)
}

fn refuse(refused: &Refused) -> Response {
    json(refused.status, &refused.json())
}

fn json(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{value}\n")).into_response()
}
