//! Memory for the conversations that pass: something recalled before a turn, what was answered told after it, and what a
//! model repeats of it kept from people.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::response::Response;
use bytes::Bytes;
use fanfold_core::{Handle, Tokens};
use fanfold_engine::Engine;
use fanfold_memory::{MemoryClient, MemoryTurn, PendingRecall};
use fanfold_redact::redact_within;
use fanfold_store::SessionId;
use fanfold_wire::reply::{Transport, ReplyReader, ReplyScrubber};
use fanfold_wire::{Format, accepts_memory_block, user_prompts};
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};

use crate::meter::Meter;
use crate::reply::recall_rounds::is_blank;

/// Memory for the conversations that pass.
#[derive(Clone)]
pub struct Remember {
    /// Asks and tells the provider. Whoever started it ends it.
    pub keeper: Arc<MemoryClient>,
    /// How many tokens of a request it may have.
    pub room: Tokens,
}

/// A request whose turn is remembered.
#[derive(Clone)]
pub(crate) struct Minded {
    remember: Remember,
    meter: Arc<Meter>,
    turn: MemoryTurn,
    recalling: PendingRecall,
}

/// The longest whole answer that is held: the limit of what is looked at in it.
const LONGEST_WHOLE: usize = 32 << 20;

impl Remember {
    /// Begins to recall something for a request; none for one that no person asked. Our own deadline is that of the
    /// fold, and half of it must do.
    pub(crate) fn minded(
        &self,
        body: &str,
        format: Format,
        named: Option<&str>,
        deadline: Duration,
        meter: &Arc<Meter>,
    ) -> Option<Minded> {
        if !accepts_memory_block(body, format) {
            return None;
        }
        let turn = MemoryTurn::from_prompts(&user_prompts(body, format), named)?;
        let recalling = self.keeper.recall(&turn, deadline / 2);
        Some(Minded { remember: self.clone(), meter: Arc::clone(meter), turn, recalling })
    }
}

impl Minded {
    /// How many tokens of the request memory may have.
    pub(crate) fn room(&self) -> Tokens {
        self.remember.room
    }

    /// What is recalled for the turn. It waits up to the deadline, so it is asked on a thread that may.
    pub(crate) fn text(&self) -> Option<String> {
        self.remember.keeper.recalled_text(&self.recalling)
    }

    /// Offers what a request folded first.
    pub(crate) fn offer(&self, engine: &Engine, session: &SessionId, handles: &[Handle]) {
        if handles.is_empty() {
            return;
        }
        // Secrets are taken out here, where all of a text can be seen: a part of it may not show what it is a part of.
        let originals = engine.look(session, |followed| {
            let wholes = handles.iter().filter_map(|handle| followed.session.recall_within(*handle).ok());
            let clean = |parts: Vec<(String, Range<usize>)>| -> String {
                parts.iter().map(|(whole, part)| redact_within(whole, part.clone())).collect()
            };
            wholes.map(clean).collect::<Vec<String>>()
        });
        self.remember.keeper.offer_folded(&self.turn, &originals.unwrap_or_default());
    }

    /// An answer without what the model repeats of its memory. When it has ended well, the turn is told.
    pub(crate) async fn scrub(self, mut response: Response, format: Format) -> Response {
        let headers = response.headers();
        let is_readable = headers.get(CONTENT_ENCODING).is_none_or(|encoding| encoding == "identity");
        if !response.status().is_success() || !is_readable {
            return response;
        }
        let carried = Transport::from_content_type(headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()));
        let chunks = std::mem::take(response.body_mut()).into_data_stream();
        let mut listening = Listening {
            chunks,
            scrubbed: ReplyScrubber::new(format, carried),
            reply: Some(ReplyReader::new(format, carried)),
            minded: self,
            is_over: false,
            is_blank: carried == Transport::Whole,
        };
        // It may become shorter.
        response.headers_mut().remove(CONTENT_LENGTH);
        if carried == Transport::Stream {
            return response.map(|_| Body::from_stream(listening.stream()));
        }
        let mut whole = Vec::new();
        while let Some(next) = listening.next().await {
            match next {
                Ok(bytes) if listening.is_blank => {
                    let begun = stream::iter([Ok(bytes)]);
                    return response.map(|_| Body::from_stream(begun.chain(listening.stream())));
                }
                Ok(bytes) => whole.extend_from_slice(&bytes),
                // What breaks off breaks off for the client, too.
                Err(error) => {
                    let begun = stream::iter([Ok(Bytes::from(whole)), Err(error)]);
                    return response.map(|_| Body::from_stream(begun));
                }
            }
            if whole.len() > LONGEST_WHOLE {
                let begun = stream::iter([Ok(Bytes::from(whole))]);
                return response.map(|_| Body::from_stream(begun.chain(listening.stream())));
            }
        }
        response.map(|_| Body::from(whole))
    }
}

/// An answer that is listened to on its way.
struct Listening {
    chunks: BodyDataStream,
    scrubbed: ReplyScrubber,
    /// None once it has ended.
    reply: Option<ReplyReader>,
    minded: Minded,
    is_over: bool,
    /// Whether all that came of a whole answer is white space, by which a provider keeps the connection alive.
    is_blank: bool,
}

impl Listening {
    fn stream(self) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send {
        stream::unfold(
            self,
            |mut listening| async move { listening.next().await.map(|next| (next, listening)) },
        )
    }

    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        loop {
            if self.is_over {
                return None;
            }
            let shown = match self.chunks.next().await {
                Some(Ok(chunk)) if self.is_blank && is_blank(&chunk) => return Some(Ok(chunk)),
                Some(Ok(chunk)) => {
                    self.is_blank = false;
                    if let Some(reply) = &mut self.reply {
                        reply.feed(&chunk);
                    }
                    self.scrubbed.feed(&chunk)
                }
                Some(Err(error)) => {
                    self.is_over = true;
                    self.reply = None;
                    return Some(Err(error));
                }
                None => {
                    self.is_over = true;
                    let rest = self.scrubbed.end();
                    self.end();
                    rest
                }
            };
            if !shown.is_empty() {
                return Some(Ok(shown.into()));
            }
        }
    }

    /// The answer has ended: if it is one, and no call that the client answers first, the turn is told.
    fn end(&mut self) {
        let Some(said) = self.reply.take().map(ReplyReader::end) else { return };
        if self.scrubbed.n_scrubbed() > 0 {
            self.minded.meter.remembered("scrubbed");
        }
        let is_answer = said.is_ended && said.failure.is_none() && said.calls.is_empty();
        if is_answer {
            self.minded.remember.keeper.turn_answered(&self.minded.turn, self.scrubbed.shown_text());
        }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // A client that has what it wanted may close before the last byte is asked for.
        self.end();
    }
}
