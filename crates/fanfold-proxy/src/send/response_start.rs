//! The beginning of an answer, looked at before it goes on: a refusal may come as an error, as the first event of a
//! stream that began well, or as a short answer that is none.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use fanfold_wire::Format;
use fanfold_wire::reply::sse::Splitter;
use fanfold_wire::reply::{Transport, PromptFill, Refusal, ReplyReader, refusal, refusal_in_reply};
use futures_util::{StreamExt as _, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use tokio::time::{Instant, timeout_at};

use crate::receive::encoding::Unpacking;

/// An error is read up to here.
pub(crate) const LONGEST_ERROR: usize = 1 << 20;
/// A whole answer that is longer is an answer.
const LONGEST_REFUSAL: usize = 16 << 10;
/// From its first bytes on, an answer that says nothing yet is held back for so long at most.
const PATIENCE: Duration = Duration::from_millis(150);
/// An error is waited for longer: no client shows a half of it.
const PATIENCE_WITH_ERRORS: Duration = Duration::from_secs(2);

/// An answer whose beginning was looked at.
pub(crate) struct Opened {
    /// The answer, with all of its bytes.
    pub(crate) response: http::Response<Body>,
    /// The refusal that it is.
    pub(crate) refusal: Option<Refusal>,
}

/// Looks at the beginning of an answer to a request that filled so much of the window. One that came packed, though
/// nobody asked for that, is unpacked, each piece up to a limit.
pub(crate) async fn open(
    response: http::Response<reqwest::Body>,
    format: Format,
    filled: PromptFill,
    limit: usize,
) -> Opened {
    let response = unpacked(response.map(Body::new), limit);
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let (parts, body) = response.into_parts();
    let (carried, is_readable, n_told) = {
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let is_readable = text(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
        let n_told = text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
        (Transport::from_content_type(text(CONTENT_TYPE)), is_readable, n_told)
    };
    let whole = |body| http::Response::from_parts(parts, body);
    if !is_readable || !(status.is_success() || is_error) {
        return Opened { response: whole(body), refusal: None };
    }
    if is_error {
        let (body, error) = read(body, LONGEST_ERROR, PATIENCE_WITH_ERRORS).await;
        let refusal = error.and_then(|error| refusal(status.as_u16(), &error, filled));
        return Opened { response: whole(body), refusal };
    }
    let (body, refusal) = match carried {
        Transport::Stream => first_events(body, format).await,
        Transport::Whole if n_told.is_some_and(|told| told > LONGEST_REFUSAL) => (body, None),
        Transport::Whole => {
            let (body, answer) = read(body, LONGEST_REFUSAL, PATIENCE).await;
            (body, answer.and_then(|answer| refusal_in_reply(&answer)))
        }
    };
    Opened { response: whole(body), refusal }
}

/// An answer as it was before it was packed; itself where it was not, or in a way that is not known here.
fn unpacked(response: http::Response<Body>, limit: usize) -> http::Response<Body> {
    let Some(unpacking) = Unpacking::of(response.headers(), limit) else { return response };
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_ENCODING);
    parts.headers.remove(CONTENT_LENGTH);
    let state = Some((body.into_data_stream(), unpacking));
    let pieces = stream::unfold(state, |state| async move {
        let (mut chunks, mut unpacking) = state?;
        loop {
            let piece = match chunks.next().await {
                Some(Ok(chunk)) => unpacking.feed(&chunk).map_err(axum::Error::new),
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let last = unpacking.end().map_err(axum::Error::new);
                    return Some((last.map(Bytes::from), None));
                }
            };
            match piece {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Some((Ok(Bytes::from(piece)), Some((chunks, unpacking)))),
                Err(error) => return Some((Err(error), None)),
            }
        }
    });
    http::Response::from_parts(parts, Body::from_stream(pieces))
}

/// An answer that is held back. The first bytes are waited for as long as they take; from then on it is held for so long
/// and no longer, whatever comes: a sign of life goes on as a sign of life.
struct Holding {
    chunks: BodyDataStream,
    patience: Duration,
    /// None before the first bytes.
    until: Option<Instant>,
    held: Vec<Result<Bytes, axum::Error>>,
    n_bytes: usize,
}

/// What comes next of an answer that is held back.
enum Next {
    /// A piece of it.
    Piece(Bytes),
    /// Its end.
    End,
    /// It broke off, or it was held for long enough.
    GoOn,
}

impl Holding {
    fn new(body: Body, patience: Duration) -> Holding {
        Holding { chunks: body.into_data_stream(), patience, until: None, held: Vec::new(), n_bytes: 0 }
    }

    async fn next(&mut self) -> Next {
        let chunk = match self.until {
            None => self.chunks.next().await,
            Some(until) if until <= Instant::now() => return Next::GoOn,
            Some(until) => match timeout_at(until, self.chunks.next()).await {
                Ok(chunk) => chunk,
                Err(_) => return Next::GoOn,
            },
        };
        self.until.get_or_insert_with(|| Instant::now() + self.patience);
        match chunk {
            Some(Ok(bytes)) => {
                self.n_bytes += bytes.len();
                self.held.push(Ok(bytes.clone()));
                Next::Piece(bytes)
            }
            Some(broken) => {
                self.held.push(broken);
                Next::GoOn
            }
            None => Next::End,
        }
    }

    /// What was held back, and what comes behind it. An error comes a moment after what came before it: a server that
    /// meets both at once closes the connection and sends neither.
    fn into_body(self) -> Body {
        const MOMENT: Duration = Duration::from_millis(20);
        Body::from_stream(stream::iter(self.held).chain(self.chunks).then(|piece| async {
            if piece.is_err() {
                tokio::time::sleep(MOMENT).await;
            }
            piece
        }))
    }
}

/// Reads an answer to its end, if that is near. Gives a body with all of its bytes.
async fn read(body: Body, most: usize, patience: Duration) -> (Body, Option<Vec<u8>>) {
    let mut holding = Holding::new(body, patience);
    loop {
        match holding.next().await {
            Next::Piece(_) if holding.n_bytes <= most => {}
            Next::Piece(_) | Next::GoOn => return (holding.into_body(), None),
            Next::End => {
                let whole = holding.held.iter().flatten().fold(Vec::new(), |mut whole, piece| {
                    whole.extend_from_slice(piece);
                    whole
                });
                return (Body::from(whole.clone()), Some(whole));
            }
        }
    }
}

/// Holds a stream back until it says something or fails.
async fn first_events(body: Body, format: Format) -> (Body, Option<Refusal>) {
    let mut holding = Holding::new(body, PATIENCE);
    let mut reply = ReplyReader::new(format, Transport::Stream);
    let mut splitter = Splitter::default();
    let mut refusal = None;
    while let Next::Piece(bytes) = holding.next().await {
        reply.feed(&bytes);
        let events = splitter.feed(&bytes);
        refusal = reply.so_far().refusal();
        let says_nothing = events.iter().all(|event| format.is_preamble(event));
        if refusal.is_some() || !says_nothing || holding.n_bytes > LONGEST_ERROR {
            break;
        }
    }
    (holding.into_body(), refusal)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_came_packed_goes_on_as_it_is_read() {
        let text = "data: {\"choices\":[]}\n\n".repeat(50);
        let mut packed = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
        packed.write_all(text.as_bytes()).unwrap();
        let packed = packed.into_inner();
        let answer = |bytes: Vec<u8>| {
            let chunks: Vec<_> =
                bytes.chunks(9).map(|chunk| Ok::<_, std::io::Error>(Bytes::copy_from_slice(chunk))).collect();
            let response =
                http::Response::builder().header(CONTENT_ENCODING, "br").header(CONTENT_LENGTH, "9");
            response.body(Body::from_stream(stream::iter(chunks))).unwrap()
        };
        let read = unpacked(answer(packed.clone()), 1 << 20);
        assert!(
            !read.headers().contains_key(CONTENT_ENCODING) && !read.headers().contains_key(CONTENT_LENGTH)
        );
        assert_eq!(axum::body::to_bytes(read.into_body(), 1 << 20).await.unwrap(), text);
        let cut = unpacked(answer(packed[..packed.len() - 2].to_vec()), 1 << 20);
        assert!(
            axum::body::to_bytes(cut.into_body(), 1 << 20).await.is_err(),
            "half of it is not taken for all"
        );
        let small = unpacked(answer(packed), 100);
        assert!(
            axum::body::to_bytes(small.into_body(), 1 << 20).await.is_err(),
            "no more than there is room for"
        );
    }
}
