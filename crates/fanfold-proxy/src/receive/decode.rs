//! Decodes a body on a blocking thread: decompression, parsing, and the start of its memory lookup.
//!
//! `prepare::folding` parses a body again if it adds recalls to it, or after the provider refused it. Decoding shares the
//! deadline and the slots of folding.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fanfold_engine::Mode;
use fanfold_wire::{DecodeError, Format, Incoming};
use http::HeaderMap;

use crate::admission::body_quota::QuotaShare;
use crate::admission::fold_slots::BodySize;
use crate::outcome::BypassReason;
use crate::receive::encoding::{self, EncodingError};
use crate::receive::read_body::BufferedBody;
use crate::receive::turn_memory::TurnMemory;
use crate::send::call::ProviderCall;
use crate::shared::Shared;

/// A conversation request, with its body decoded if possible.
pub(crate) struct ReceivedRequest {
    pub(crate) format: Format,
    /// The body, perhaps compressed.
    pub(crate) body: BufferedBody,
    /// The session that the client named.
    pub(crate) session_name: Option<String>,
    pub(crate) decoded: Result<DecodedBody, BypassReason>,
}

/// A decoded conversation.
pub(crate) struct DecodedBody {
    /// The decompressed body.
    pub(crate) received: Bytes,
    /// The same with pending recalls.
    pub(crate) text: Bytes,
    pub(crate) has_pending_recalls: bool,
    pub(crate) parsed: Incoming,
    pub(crate) model: Option<String>,
    /// The memory lookup of its turn, which runs in the background.
    pub(crate) memory: Option<TurnMemory>,
    /// Additional quota for the decompressed size.
    pub(crate) share: QuotaShare,
    /// The part of the deadline used for decoding.
    pub(crate) elapsed: Duration,
}

/// Input of the blocking part.
struct CompressedBody {
    headers: HeaderMap,
    bytes: Bytes,
    format: Format,
    session_name: Option<String>,
}

/// Decodes the body of a conversation.
pub(crate) async fn decode(
    call: &ProviderCall,
    format: Format,
    body: BufferedBody,
    session_name: Option<String>,
) -> ReceivedRequest {
    let compressed = CompressedBody {
        headers: call.headers.clone(),
        bytes: body.bytes.clone(),
        format,
        session_name: session_name.clone(),
    };
    let decoded = decode_within_deadline(&call.shared, compressed).await;
    ReceivedRequest { format, body, session_name, decoded }
}

async fn decode_within_deadline(
    shared: &Arc<Shared>,
    body: CompressedBody,
) -> Result<DecodedBody, BypassReason> {
    let started = Instant::now();
    let work = async {
        let (mut share, mut n_bytes) = (QuotaShare::default(), body.bytes.len());
        if encoding::is_compressed(&body.headers) {
            // Measure first: this takes no memory, and the quota is granted before the body is decompressed.
            let (headers, bytes, limit) = (body.headers.clone(), body.bytes.clone(), shared.limits.body);
            let measure = move || encoding::decompressed_size(&headers, &bytes, limit);
            n_bytes = shared.fold_slots.run(BodySize { n_bytes, n_messages: 0 }, measure).await??;
            shared.body_quota.grow(&mut share, n_bytes).await;
        }
        let for_thread = Arc::clone(shared);
        let size = BodySize { n_bytes, n_messages: 0 };
        shared.fold_slots.run(size, move || decode_blocking(&for_thread, &body, share, started)).await?
    };
    tokio::time::timeout(shared.limits.deadline, work).await.unwrap_or(Err(BypassReason::Deadline))
}

fn decode_blocking(
    shared: &Shared,
    body: &CompressedBody,
    share: QuotaShare,
    started: Instant,
) -> Result<DecodedBody, BypassReason> {
    let received = encoding::decompress(&body.headers, &body.bytes, shared.limits.body)?;
    let text = std::str::from_utf8(&received).map_err(|_| BypassReason::NotDecoded)?;
    let mut parsed = parse(shared, text, body.format).map_err(|_| {
        // The error may quote the body, so it is not logged.
        tracing::warn!(why = %BypassReason::NotDecoded, "body sent unchanged");
        BypassReason::NotDecoded
    })?;
    if parsed.n_messages() > shared.limits.messages {
        return Err(BypassReason::TooLarge);
    }
    let mut text = received.clone();
    let with_recalls = shared.pending_recalls.insert_into(&parsed);
    let has_pending_recalls = with_recalls.is_some();
    if let Some(with_recalls) = with_recalls {
        text = Bytes::from(with_recalls.clone());
        parsed = Incoming::open(with_recalls, Some(body.format)).map_err(|_| BypassReason::NotDecoded)?;
    }
    let memory = shared.memory.as_ref().filter(|_| shared.folder.mode() == Mode::Fold);
    let memory = memory.and_then(|memory| {
        memory.start_turn(&parsed, body.session_name.as_deref(), shared.limits.deadline, &shared.meter)
    });
    let model = parsed.model().map(str::to_owned);
    Ok(DecodedBody {
        received,
        text,
        has_pending_recalls,
        parsed,
        model,
        memory,
        share,
        elapsed: started.elapsed(),
    })
}

/// Parses a body; a cached session saves parsing its beginning again.
fn parse(shared: &Shared, text: &str, format: Format) -> Result<Incoming, DecodeError> {
    shared.engine.get().open(text, format)
}

impl From<EncodingError> for BypassReason {
    fn from(error: EncodingError) -> BypassReason {
        match error {
            EncodingError::TooLarge => BypassReason::TooLarge,
            EncodingError::Unknown | EncodingError::Corrupt => BypassReason::Encoding,
        }
    }
}
