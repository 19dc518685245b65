//! Removes quotations of a memory block from an answer, and records the answer in memory when it has ended.

use axum::body::{Body, BodyDataStream};
use axum::response::Response;
use bytes::Bytes;
use fanfold_wire::Format;
use fanfold_wire::reply::{ReplyReader, ReplyScrubber, Transport};
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

use crate::receive::turn_memory::TurnMemory;
use crate::reply::{broken_off, is_blank, is_readable};

/// Limit for buffering an unstreamed answer; a longer one is filtered as a stream.
const MAX_HELD: usize = 32 << 20;

/// Filters an answer.
pub(crate) async fn filter(memory: TurnMemory, mut response: Response, format: Format) -> Response {
    let headers = response.headers();
    if !response.status().is_success() || !is_readable(headers) {
        return response;
    }
    let transport =
        Transport::from_content_type(headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()));
    let chunks = std::mem::take(response.body_mut()).into_data_stream();
    let filter = MemoryFilter {
        chunks,
        scrubber: ReplyScrubber::new(format, transport),
        reply: Some(ReplyReader::new(format, transport)),
        memory,
        is_over: false,
        is_blank: transport == Transport::Whole,
    };
    // The filtered answer may be shorter.
    response.headers_mut().remove(CONTENT_LENGTH);
    match transport {
        Transport::Stream => response.map(|_| Body::from_stream(filter.stream())),
        Transport::Whole => filter.whole(response).await,
    }
}

struct MemoryFilter {
    chunks: BodyDataStream,
    scrubber: ReplyScrubber,
    /// `None` once the answer has ended.
    reply: Option<ReplyReader>,
    memory: TurnMemory,
    is_over: bool,
    /// True if only white space has arrived of an unstreamed answer; providers send it to keep the connection alive.
    is_blank: bool,
}

impl MemoryFilter {
    /// Collects an unstreamed answer, so that it gets a length. Falls back to a stream if it starts with white
    /// space or is too long.
    async fn whole(mut self, response: Response) -> Response {
        let mut whole = Vec::new();
        while let Some(next) = self.next().await {
            match next {
                Ok(bytes) if self.is_blank => return response.map(|_| self.stream_after(bytes)),
                Ok(bytes) => whole.extend_from_slice(&bytes),
                Err(error) => return broken_off(&response, &error),
            }
            if whole.len() > MAX_HELD {
                return response.map(|_| self.stream_after(Bytes::from(whole)));
            }
        }
        response.map(|_| Body::from(whole))
    }

    fn stream_after(self, beginning: Bytes) -> Body {
        Body::from_stream(stream::iter([Ok(beginning)]).chain(self.stream()))
    }

    fn stream(self) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
        stream::unfold(self, |mut filter| async move { filter.next().await.map(|next| (next, filter)) })
    }

    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            if self.is_over {
                return None;
            }
            let filtered = match self.chunks.next().await {
                Some(Ok(chunk)) if self.is_blank && is_blank(&chunk) => return Some(Ok(chunk)),
                Some(Ok(chunk)) => {
                    self.is_blank = false;
                    if let Some(reply) = &mut self.reply {
                        reply.feed(&chunk);
                    }
                    self.scrubber.feed(&chunk)
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    self.reply = None;
                    return Some(Err(error));
                }
                None => {
                    self.is_over = true;
                    let rest = self.scrubber.end();
                    self.end();
                    rest
                }
            };
            if !filtered.is_empty() {
                return Some(Ok(filtered.into()));
            }
        }
    }

    /// Records the answer, unless it failed or ends with calls that the client runs first.
    fn end(&mut self) {
        let Some(reply) = self.reply.take().map(ReplyReader::end) else { return };
        if self.scrubber.n_scrubbed() > 0 {
            self.memory.count_scrubbed();
        }
        let is_answer = reply.is_ended && reply.failure.is_none() && reply.calls.is_empty();
        if is_answer {
            self.memory.record_answer(self.scrubber.shown_text());
        }
    }
}

impl Drop for MemoryFilter {
    fn drop(&mut self) {
        // A client may close the connection before it has read the last byte.
        self.end();
    }
}
