//! Reads the beginning of a response to find refusals: an error, the first event of a stream, or a short answer.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use bytes::Bytes;
use fanfold_wire::Format;
use fanfold_wire::reply::sse::Splitter;
use fanfold_wire::reply::{PromptFill, Refusal, ReplyReader, Transport, refusal, refusal_in_reply};
use futures_util::{StreamExt as _, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use tokio::time::{Instant, timeout_at};

use crate::receive::encoding::StreamDecoder;

/// Errors are read up to this size.
pub(crate) const MAX_ERROR_BYTES: usize = 1 << 20;
/// An unstreamed answer above this size is not a refusal.
const MAX_REFUSAL_BYTES: usize = 16 << 10;
/// Delay of a response without content after its first bytes.
const HOLD_TIME: Duration = Duration::from_millis(150);
/// Errors are held back for longer, because no client shows part of one.
const HOLD_TIME_OF_ERRORS: Duration = Duration::from_secs(2);

/// A response whose beginning was read.
pub(crate) struct ResponseStart {
    /// The response, with all of its bytes.
    pub(crate) response: http::Response<Body>,
    /// Set if the body was refused for its length.
    pub(crate) refusal: Option<Refusal>,
}

/// Reads the beginning of a response. `filled` is the share of the window that the request used. A compressed response,
/// which was not requested, is decompressed.
pub(crate) async fn read_start(
    response: http::Response<reqwest::Body>,
    format: Format,
    filled: PromptFill,
    limit: usize,
) -> ResponseStart {
    let response = decompressed(response.map(Body::new), limit);
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let (parts, body) = response.into_parts();
    let (transport, is_readable, declared_length) = {
        let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let is_readable = text(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
        let declared_length = text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
        (Transport::from_content_type(text(CONTENT_TYPE)), is_readable, declared_length)
    };
    let whole = |body| http::Response::from_parts(parts, body);
    if !is_readable || !(status.is_success() || is_error) {
        return ResponseStart { response: whole(body), refusal: None };
    }
    if is_error {
        let (body, error) = read_short(body, MAX_ERROR_BYTES, HOLD_TIME_OF_ERRORS).await;
        let refusal = error.and_then(|error| refusal(status.as_u16(), &error, filled));
        return ResponseStart { response: whole(body), refusal };
    }
    let (body, refusal) = match transport {
        Transport::Stream => first_events(body, format).await,
        Transport::Whole if declared_length.is_some_and(|length| length > MAX_REFUSAL_BYTES) => (body, None),
        Transport::Whole => {
            let (body, answer) = read_short(body, MAX_REFUSAL_BYTES, HOLD_TIME).await;
            (body, answer.and_then(|answer| refusal_in_reply(&answer)))
        }
    };
    ResponseStart { response: whole(body), refusal }
}

/// A response without its content encoding; unchanged if it has none, or an unknown one.
fn decompressed(response: http::Response<Body>, limit: usize) -> http::Response<Body> {
    let Some(decoder) = StreamDecoder::from_headers(response.headers(), limit) else { return response };
    let (mut parts, body) = response.into_parts();
    parts.headers.remove(CONTENT_ENCODING);
    parts.headers.remove(CONTENT_LENGTH);
    let state = Some((body.into_data_stream(), decoder));
    let chunks_out = stream::unfold(state, |state| async move {
        let (mut chunks, mut decoder) = state?;
        loop {
            let piece = match chunks.next().await {
                Some(Ok(chunk)) => decoder.feed(&chunk).map_err(axum::Error::new),
                Some(Err(error)) => return Some((Err(error), None)),
                None => {
                    let last = decoder.end().map_err(axum::Error::new);
                    return Some((last.map(Bytes::from), None));
                }
            };
            match piece {
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => return Some((Ok(Bytes::from(piece)), Some((chunks, decoder)))),
                Err(error) => return Some((Err(error), None)),
            }
        }
    });
    http::Response::from_parts(parts, Body::from_stream(chunks_out))
}

/// A delayed response. There is no time limit before its first bytes; afterwards the delay is short, so that bytes
/// sent to keep the connection alive reach the client.
struct HeldResponse {
    chunks: BodyDataStream,
    hold_time: Duration,
    /// `None` before the first bytes.
    until: Option<Instant>,
    held: Vec<Result<Bytes, axum::Error>>,
    n_bytes: usize,
}

/// The next part of a delayed response.
enum NextPart {
    Chunk(Bytes),
    End,
    /// The response broke off, or was held for long enough.
    Release,
}

impl HeldResponse {
    fn new(body: Body, hold_time: Duration) -> HeldResponse {
        HeldResponse { chunks: body.into_data_stream(), hold_time, until: None, held: Vec::new(), n_bytes: 0 }
    }

    async fn next(&mut self) -> NextPart {
        let chunk = match self.until {
            None => self.chunks.next().await,
            Some(until) if until <= Instant::now() => return NextPart::Release,
            Some(until) => match timeout_at(until, self.chunks.next()).await {
                Ok(chunk) => chunk,
                Err(_) => return NextPart::Release,
            },
        };
        self.until.get_or_insert_with(|| Instant::now() + self.hold_time);
        match chunk {
            Some(Ok(bytes)) => {
                self.n_bytes += bytes.len();
                self.held.push(Ok(bytes.clone()));
                NextPart::Chunk(bytes)
            }
            Some(broken) => {
                self.held.push(broken);
                NextPart::Release
            }
            None => NextPart::End,
        }
    }

    /// The chunks that were held back, followed by the rest.
    fn into_body(self) -> Body {
        Body::from_stream(stream::iter(self.held).chain(self.chunks))
    }
}

/// Reads a response to its end, if it is short. Returns a body with all of its bytes.
async fn read_short(body: Body, max_bytes: usize, hold_time: Duration) -> (Body, Option<Vec<u8>>) {
    let mut held = HeldResponse::new(body, hold_time);
    loop {
        match held.next().await {
            NextPart::Chunk(_) if held.n_bytes <= max_bytes => {}
            NextPart::Chunk(_) | NextPart::Release => return (held.into_body(), None),
            NextPart::End => {
                let whole = held.held.iter().flatten().fold(Vec::new(), |mut whole, piece| {
                    whole.extend_from_slice(piece);
                    whole
                });
                return (Body::from(whole.clone()), Some(whole));
            }
        }
    }
}

/// Holds a stream back until it has content or fails.
async fn first_events(body: Body, format: Format) -> (Body, Option<Refusal>) {
    let mut held = HeldResponse::new(body, HOLD_TIME);
    let mut reply = ReplyReader::new(format, Transport::Stream);
    let mut splitter = Splitter::default();
    let mut refusal = None;
    while let NextPart::Chunk(bytes) = held.next().await {
        reply.feed(&bytes);
        let events = splitter.feed(&bytes);
        refusal = reply.so_far().refusal();
        let is_empty = events.iter().all(|event| format.is_preamble(event));
        if refusal.is_some() || !is_empty || held.n_bytes > MAX_ERROR_BYTES {
            break;
        }
    }
    (held.into_body(), refusal)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[tokio::test]
    async fn a_compressed_response_is_decompressed() {
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
        let read = decompressed(answer(packed.clone()), 1 << 20);
        assert!(
            !read.headers().contains_key(CONTENT_ENCODING) && !read.headers().contains_key(CONTENT_LENGTH)
        );
        assert_eq!(axum::body::to_bytes(read.into_body(), 1 << 20).await.unwrap(), text);
        let cut = decompressed(answer(packed[..packed.len() - 2].to_vec()), 1 << 20);
        assert!(axum::body::to_bytes(cut.into_body(), 1 << 20).await.is_err(), "a truncated response fails");
        let small = decompressed(answer(packed), 100);
        assert!(
            axum::body::to_bytes(small.into_body(), 1 << 20).await.is_err(),
            "the limit applies to the decompressed size"
        );
    }
}
