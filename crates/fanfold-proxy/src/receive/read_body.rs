//! Reads a body up to a size limit and within the memory quota. A larger one stays a stream and is not held in memory.

use std::time::{Duration, Instant};

use axum::body::{Body, BodyDataStream};
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::StatusCode;

use crate::admission::body_quota::{BodyQuota, QuotaShare};
use crate::error_reply::ErrorReply;
use crate::outcome::BypassReason;
use crate::shared::Shared;

/// A body after reading.
pub(crate) enum ReadBody {
    Whole(BufferedBody),
    /// The body is too large or exceeds the quota. The stream repeats the bytes that were already read.
    Unread(Body, BypassReason),
}

/// A body in memory, with its share of the quota.
pub(crate) struct BufferedBody {
    pub(crate) bytes: Bytes,
    pub(crate) _share: QuotaShare,
}

/// Why a body could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadError {
    /// The client was silent for too long.
    Silent,
    /// The connection broke, or the body is malformed.
    Broken,
}

impl From<ReadError> for ErrorReply {
    fn from(error: ReadError) -> ErrorReply {
        match error {
            ReadError::Silent => ErrorReply::new(
                StatusCode::REQUEST_TIMEOUT,
                "timeout while reading the body",
                "send the body without pauses",
            ),
            ReadError::Broken => ErrorReply::new(
                StatusCode::BAD_REQUEST,
                "the body ended early",
                "check the connection and the content-length header",
            ),
        }
    }
}

/// Limits for reading a body.
#[derive(Clone, Copy)]
struct ReadLimits<'a> {
    max_bytes: usize,
    /// Timeout for a silent client.
    idle: Duration,
    quota: &'a BodyQuota,
    /// Timeout for the quota.
    quota_timeout: Duration,
}

/// Reads a body.
pub(crate) async fn read(shared: &Shared, body: Body) -> Result<ReadBody, ErrorReply> {
    let limits = ReadLimits {
        max_bytes: shared.limits.body,
        idle: shared.limits.client_idle,
        quota: &shared.body_quota,
        quota_timeout: shared.limits.deadline,
    };
    Ok(read_within(body, limits).await?)
}

async fn read_within(body: Body, limits: ReadLimits<'_>) -> Result<ReadBody, ReadError> {
    let mut chunks = body.into_data_stream();
    // Chunks are copied at once, so that the body is in memory only once.
    let mut held = BytesMut::new();
    let (mut share, mut quota_timeout) = (QuotaShare::default(), limits.quota_timeout);
    loop {
        let next = tokio::time::timeout(limits.idle, chunks.next()).await.map_err(|_| ReadError::Silent)?;
        let Some(chunk) = next.transpose().map_err(|_| ReadError::Broken)? else { break };
        held.extend_from_slice(&chunk);
        if held.len() > limits.max_bytes {
            return Ok(ReadBody::Unread(rejoin(held, chunks), BypassReason::TooLarge));
        }
        // While a body waits for the quota it is not read, so the client sends no more of it.
        let waiting_since = Instant::now();
        let granted = limits.quota.grow(&mut share, held.len());
        if tokio::time::timeout(quota_timeout, granted).await.is_err() {
            return Ok(ReadBody::Unread(rejoin(held, chunks), BypassReason::Busy));
        }
        quota_timeout = quota_timeout.saturating_sub(waiting_since.elapsed());
    }
    Ok(ReadBody::Whole(BufferedBody { bytes: held.freeze(), _share: share }))
}

/// The bytes that were read, followed by the rest of the stream.
fn rejoin(held: BytesMut, rest: BodyDataStream) -> Body {
    Body::from_stream(stream::iter([Ok(held.freeze())]).chain(rest.into_stream()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_bytes: usize, quota: &BodyQuota) -> ReadLimits<'_> {
        let (idle, quota_timeout) = (Duration::from_millis(100), Duration::from_millis(10));
        ReadLimits { max_bytes, idle, quota, quota_timeout }
    }

    fn in_chunks(chunks: &[&'static str]) -> Body {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok::<_, std::io::Error>(*chunk)).collect();
        Body::from_stream(stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_body_over_the_limit_stays_a_stream() {
        let quota = BodyQuota::new(1 << 20);
        let read_in = |chunks: &[&'static str]| read_within(in_chunks(chunks), limits(6, &quota));
        let Ok(ReadBody::Whole(whole)) = read_in(&["abc", "def"]).await else { panic!("it fits") };
        assert_eq!(whole.bytes, "abcdef");
        let Ok(ReadBody::Unread(long, BypassReason::TooLarge)) = read_in(&["abc", "def", "g", "h"]).await
        else {
            panic!("too long")
        };
        assert_eq!(axum::body::to_bytes(long, 100).await.unwrap(), "abcdefgh");
    }

    #[tokio::test]
    async fn a_body_without_quota_stays_a_stream() {
        let quota = BodyQuota::new(1 << 20);
        let large: &'static str = "word ".repeat(150_000).leak();
        let read_in = || read_within(in_chunks(&[large, "end"]), limits(8 << 20, &quota));
        let Ok(ReadBody::Whole(held)) = read_in().await else { panic!("there is room") };
        let Ok(ReadBody::Unread(long, BypassReason::Busy)) = read_in().await else { panic!("there is none") };
        assert_eq!(axum::body::to_bytes(long, 8 << 20).await.unwrap(), format!("{large}end"));
        drop(held);
        assert!(matches!(read_in().await, Ok(ReadBody::Whole(_))));
    }

    #[tokio::test]
    async fn a_silent_client_times_out() {
        let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let read = read_within(silent, limits(6, &BodyQuota::new(1))).await;
        assert_eq!(read.err(), Some(ReadError::Silent));
    }
}
