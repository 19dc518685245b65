//! A body read whole, up to a limit. One that is larger stays a stream and costs no memory.

use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use crate::admission::body_quota::{Shelf, Space};
use crate::prepare::prepared_body::Reason;

/// A body that came.
pub(crate) enum Arrived {
    /// All of it, and where it is held.
    Whole(Bytes, Space),
    /// More than is looked at, or than there is space for: what was read, and the rest behind it.
    Long(Body, Reason),
}

/// Why a body did not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotArrived {
    /// The client was silent for too long.
    Silent,
    /// The connection broke, or what came was no body.
    Broken,
}

/// How a body is read.
pub(crate) struct Terms<'a> {
    /// More than so many bytes of it are not looked at.
    pub(crate) limit: usize,
    /// How long the client may be silent.
    pub(crate) idle: Duration,
    /// Where it is held.
    pub(crate) shelf: &'a Shelf,
    /// How long it may wait for space there.
    pub(crate) patience: Duration,
}

/// Reads a body.
pub(crate) async fn read(body: Body, terms: Terms<'_>) -> Result<Arrived, NotArrived> {
    let Terms { limit, idle, shelf, patience } = terms;
    let mut chunks = body.into_data_stream();
    let mut held: Vec<Bytes> = Vec::new();
    let mut n_bytes = 0;
    let mut space = Space::default();
    let mut patience = patience;
    loop {
        let next = tokio::time::timeout(idle, chunks.next()).await.map_err(|_| NotArrived::Silent)?;
        let Some(chunk) = next.transpose().map_err(|_| NotArrived::Broken)? else { break };
        n_bytes += chunk.len();
        held.push(chunk);
        let is_too_large = n_bytes > limit;
        // A client whose body has no space yet is not read on, and so sends no more.
        let asked = Instant::now();
        let is_held =
            !is_too_large && tokio::time::timeout(patience, shelf.grow(&mut space, n_bytes)).await.is_ok();
        patience = patience.saturating_sub(asked.elapsed());
        if !is_held {
            let begun = stream::iter(held.into_iter().map(Ok));
            let body = Body::from_stream(begun.chain(chunks.into_stream()));
            let why = if is_too_large { Reason::TooLarge } else { Reason::Busy };
            return Ok(Arrived::Long(body, why));
        }
    }
    if held.len() == 1 {
        return Ok(Arrived::Whole(held.swap_remove(0), space));
    }
    let mut whole = BytesMut::with_capacity(n_bytes);
    held.iter().for_each(|chunk| whole.extend_from_slice(chunk));
    Ok(Arrived::Whole(whole.freeze(), space))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(limit: usize, shelf: &Shelf) -> Terms<'_> {
        Terms { limit, idle: Duration::from_millis(100), shelf, patience: Duration::from_millis(10) }
    }

    fn in_chunks(chunks: &[&'static str]) -> Body {
        let chunks: Vec<_> = chunks.iter().map(|chunk| Ok::<_, std::io::Error>(*chunk)).collect();
        Body::from_stream(stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_body_over_the_limit_is_passed_on_as_it_came() {
        let shelf = Shelf::new(1 << 20);
        let read_in = |chunks: &[&'static str]| read(in_chunks(chunks), terms(6, &shelf));
        let Ok(Arrived::Whole(whole, _)) = read_in(&["abc", "def"]).await else { panic!("it fits") };
        assert_eq!(whole, "abcdef");
        let Ok(Arrived::Long(long, Reason::TooLarge)) = read_in(&["abc", "def", "g", "h"]).await else {
            panic!("too long")
        };
        assert_eq!(axum::body::to_bytes(long, 100).await.unwrap(), "abcdefgh");
    }

    #[tokio::test]
    async fn a_body_without_space_is_passed_on_as_it_came() {
        let shelf = Shelf::new(1 << 20);
        let large: &'static str = "word ".repeat(150_000).leak();
        let read_in = || read(in_chunks(&[large, "end"]), terms(8 << 20, &shelf));
        let Ok(Arrived::Whole(_, space)) = read_in().await else { panic!("there is space") };
        let Ok(Arrived::Long(long, Reason::Busy)) = read_in().await else { panic!("there is none") };
        assert_eq!(axum::body::to_bytes(long, 8 << 20).await.unwrap(), format!("{large}end"));
        drop(space);
        assert!(matches!(read_in().await, Ok(Arrived::Whole(..))));
    }

    #[tokio::test]
    async fn a_silent_client_is_not_waited_for() {
        let silent = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let read = read(silent, terms(6, &Shelf::new(1))).await;
        assert_eq!(read.err(), Some(NotArrived::Silent));
    }
}
