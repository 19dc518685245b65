//! The beginning of an answer, looked at before it goes on: a refusal may come as an error, or as the first event of a
//! stream that began well.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use fanfold_wire::Format;
use fanfold_wire::reply::sse::Splitter;
use fanfold_wire::reply::{Carried, Filled, Refusal, Reply, refusal};
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt as _;

/// An error is read up to here.
const LONGEST_ERROR: usize = 1 << 20;
/// Events that say nothing yet are held back for so long at most.
const PATIENCE: Duration = Duration::from_secs(1);
/// Of Responses: what comes before anything is said.
const PREAMBLE: [&str; 3] = ["response.created", "response.in_progress", "response.queued"];

/// An answer whose beginning was looked at.
pub(crate) struct Opened {
    /// The answer, with all of its bytes.
    pub(crate) response: http::Response<Body>,
    /// The refusal that it is.
    pub(crate) refusal: Option<Refusal>,
}

/// Looks at the beginning of an answer to a request that filled so much of the window.
pub(crate) async fn open(response: http::Response<reqwest::Body>, format: Format, filled: Filled) -> Opened {
    let status = response.status();
    let text = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let carried = Carried::of(text(CONTENT_TYPE));
    let is_readable = text(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
    let is_stream = status.is_success() && carried == Carried::Stream;
    let is_error = status.is_client_error() || status.is_server_error();
    let (parts, body) = response.into_parts();
    let whole = |body| http::Response::from_parts(parts, body);
    if !is_readable || !(is_stream || is_error) {
        return Opened { response: whole(Body::new(body)), refusal: None };
    }
    if is_stream {
        let (body, refusal) = first_events(body, format).await;
        return Opened { response: whole(body), refusal };
    }
    let (body, error) = error(body).await;
    let refusal = error.and_then(|error| told(status, &error, filled));
    Opened { response: whole(body), refusal }
}

fn told(status: StatusCode, error: &[u8], filled: Filled) -> Option<Refusal> {
    refusal(status.as_u16(), error, filled)
}

/// Reads an error to its end, if it is no longer than errors are. Gives a body with all of its bytes.
async fn error(body: reqwest::Body) -> (Body, Option<Vec<u8>>) {
    let mut chunks = body.into_data_stream();
    let mut held: Vec<Bytes> = Vec::new();
    let mut n_bytes = 0;
    let mut end = None;
    while n_bytes <= LONGEST_ERROR {
        match chunks.next().await {
            Some(Ok(chunk)) => {
                n_bytes += chunk.len();
                held.push(chunk);
            }
            Some(Err(error)) => {
                end = Some(Err(error));
                break;
            }
            None => {
                let whole = held.concat();
                return (Body::from(whole.clone()), Some(whole));
            }
        }
    }
    let rest = stream::iter(held.into_iter().map(Ok)).chain(stream::iter(end)).chain(chunks);
    (Body::from_stream(rest), None)
}

/// Holds a stream back until it says something or fails.
async fn first_events(body: reqwest::Body, format: Format) -> (Body, Option<Refusal>) {
    let mut chunks = body.into_data_stream();
    let mut reply = Reply::new(format, Carried::Stream);
    let mut splitter = Splitter::default();
    let mut held: Vec<Result<Bytes, reqwest::Error>> = Vec::new();
    let mut refusal = None;
    // The first bytes are waited for as long as they take; what follows them, not for long.
    let mut most = Duration::MAX;
    let mut n_bytes = 0;
    while let Ok(Some(chunk)) = tokio::time::timeout(most, chunks.next()).await {
        most = PATIENCE;
        let Ok(bytes) = &chunk else {
            held.push(chunk);
            break;
        };
        n_bytes += bytes.len();
        reply.feed(bytes);
        let events = splitter.feed(bytes);
        held.push(chunk);
        refusal = reply.so_far().refusal();
        let says_nothing = events.iter().all(|event| {
            let is_preamble = |name: &str| format == Format::Responses && PREAMBLE.contains(&name);
            event.data().is_none() || event.name().is_some_and(is_preamble)
        });
        if refusal.is_some() || !says_nothing || n_bytes > LONGEST_ERROR {
            break;
        }
    }
    (Body::from_stream(stream::iter(held).chain(chunks)), refusal)
}
