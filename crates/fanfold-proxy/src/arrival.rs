//! A body read whole, up to a limit. One that is larger stays a stream and costs no memory.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

/// A body that came.
pub(crate) enum Arrived {
    /// All of it.
    Whole(Bytes),
    /// More than is looked at: what was read, and the rest behind it.
    Long(Body),
}

/// Why a body did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotArrived {
    /// The client was silent for too long.
    Silent,
    /// The connection broke, or what came was no body.
    Broken,
}

/// Reads a body.
pub(crate) async fn read(body: Body, limit: usize, idle: Duration) -> Result<Arrived, NotArrived> {
    let mut chunks = body.into_data_stream();
    let mut held: Vec<Bytes> = Vec::new();
    let mut n_bytes = 0;
    loop {
        let next = tokio::time::timeout(idle, chunks.next()).await.map_err(|_| NotArrived::Silent)?;
        let Some(chunk) = next.transpose().map_err(|_| NotArrived::Broken)? else { break };
        n_bytes += chunk.len();
        held.push(chunk);
        if n_bytes > limit {
            let begun = stream::iter(held.into_iter().map(Ok));
            return Ok(Arrived::Long(Body::from_stream(begun.chain(chunks.into_stream()))));
        }
    }
    if held.len() == 1 {
        return Ok(Arrived::Whole(held.swap_remove(0)));
    }
    let mut whole = BytesMut::with_capacity(n_bytes);
    held.iter().for_each(|chunk| whole.extend_from_slice(chunk));
    Ok(Arrived::Whole(whole.freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_chunks(chunks: &[&'static str]) -> Body {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok::<_, std::io::Error>(*chunk)).collect();
        Body::from_stream(stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_passed_on_as_it_came() {
        let idle = Duration::from_secs(1);
        let read_in = |chunks: &[&'static str]| read(in_chunks(chunks), 6, idle);
        let Ok(Arrived::Whole(whole)) = read_in(&["abc", "def"]).await else { panic!("it fits") };
        assert_eq!(whole, "abcdef");
        let Ok(Arrived::Long(long)) = read_in(&["abc", "def", "g", "h"]).await else { panic!("too long") };
        assert_eq!(axum::body::to_bytes(long, 100).await.unwrap(), "abcdefgh");
    }

    #[tokio::test]
    async fn a_silent_client_is_not_waited_for() {
        let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let read = read(silent, 6, Duration::from_millis(10)).await;
        assert_eq!(read.err(), Some(NotArrived::Silent));
    }
}
