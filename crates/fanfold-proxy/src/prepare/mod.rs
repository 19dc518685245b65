//! Preparing: the body that is sent to the provider, folded where necessary, edited, checked and recorded.

pub(crate) mod prepared_body;
pub(crate) mod folding;
pub(crate) mod window_probe;
pub(crate) mod subagents;
pub(crate) mod recall_offer;
pub(crate) mod provider_quirks;
pub(crate) mod summary_jobs;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fanfold_core::Tokens;
use fanfold_engine::LengthRefusal;
use fanfold_wire::{Format, Incoming};

use crate::admission::body_quota::QuotaShare;
use crate::admission::fold_slots::BodySize;
use crate::meter::RequestMeter;
use crate::prepare::prepared_body::PreparedBody;
use crate::prepare::provider_quirks::ProviderKey;
use crate::prepare::subagents::CallerId;
use crate::prepare::window_probe::UnknownWindow;
use crate::receive::decode::{DecodedBody, ReceivedRequest};
use crate::receive::read_body::BufferedBody;
use crate::receive::turn_memory::TurnMemory;
use crate::send::call::ProviderCall;
use crate::shared::Shared;

/// A decoded conversation, with everything that is known about its client and its provider.
pub(crate) struct ClientConversation {
    /// The decompressed body.
    pub(crate) received: Bytes,
    /// The same with pending recalls.
    pub(crate) text: Bytes,
    pub(crate) has_pending_recalls: bool,
    pub(crate) n_messages: usize,
    pub(crate) format: Format,
    pub(crate) model: Option<String>,
    /// The session that the client named.
    pub(crate) session_name: Option<String>,
    pub(crate) caller: CallerId,
    /// The address of the provider.
    pub(crate) upstream: String,
    pub(crate) provider: ProviderKey,
    /// Set if the window of the model is not known.
    pub(crate) unknown_window: Option<UnknownWindow>,
    /// True if a new session may be offered the recall tool.
    pub(crate) accepts_tool: bool,
    pub(crate) memory: Option<TurnMemory>,
    /// The part of the deadline used before folding.
    pub(crate) elapsed: Duration,
    _share: QuotaShare,
}

impl ClientConversation {
    pub(crate) fn size(&self) -> BodySize {
        BodySize { n_bytes: self.text.len(), n_messages: self.n_messages }
    }
}

/// The parameters of an attempt to fold a conversation. A refused body is folded a second time, harder.
#[derive(Default)]
pub(crate) struct Attempt {
    /// The parsed body, where it is still at hand.
    pub(crate) parsed: Option<Incoming>,
    /// How the provider refused the last attempt for its length.
    pub(crate) refused: Option<LengthRefusal>,
    /// The limit that it reported.
    pub(crate) reported_limit: Option<Tokens>,
    /// The session of the last attempt.
    pub(crate) session: Option<String>,
}

/// A request that is ready to be sent.
pub(crate) struct PreparedRequest {
    pub(crate) format: Format,
    /// The received body, perhaps compressed.
    pub(crate) received: BufferedBody,
    /// `None` if the body could not be decoded.
    pub(crate) conversation: Option<Arc<ClientConversation>>,
    pub(crate) prepared: PreparedBody,
}

/// Folds a conversation, edits the result for its provider, and records it.
pub(crate) async fn prepare(
    call: &ProviderCall,
    request: ReceivedRequest,
    meter: &mut RequestMeter,
) -> PreparedRequest {
    let ReceivedRequest { format, body, session_name, decoded } = request;
    let (conversation, prepared) = match decoded {
        Ok(decoded) => {
            let (conversation, parsed) = collect(call, meter, decoded, session_name);
            let attempt = Attempt { parsed: Some(parsed), ..Attempt::default() };
            let prepared = fold(&call.shared, &conversation, attempt).await;
            (Some(conversation), prepared)
        }
        Err(reason) => (None, PreparedBody::unchanged(reason)),
    };
    PreparedRequest { format, received: body, conversation, prepared }
}

/// Collects what is known about a conversation. An unknown window is probed in the background.
fn collect(
    call: &ProviderCall,
    meter: &mut RequestMeter,
    decoded: DecodedBody,
    session_name: Option<String>,
) -> (Arc<ClientConversation>, Incoming) {
    let DecodedBody { received, text, has_pending_recalls, parsed, model, memory, share, elapsed } = decoded;
    if let Some(model) = &model {
        meter.set_model(model);
    }
    let provider = ProviderKey::new(call.upstream.address(), model.as_deref(), parsed.format());
    let conversation = ClientConversation {
        received,
        text,
        has_pending_recalls,
        n_messages: parsed.n_messages(),
        format: parsed.format(),
        unknown_window: window_probe::unknown_window(call, model.as_deref()),
        model,
        session_name,
        caller: CallerId::from_headers(&call.headers),
        upstream: call.upstream.address().to_owned(),
        accepts_tool: call.shared.quirks.accepts_tool(&provider),
        provider,
        memory,
        elapsed,
        _share: share,
    };
    (Arc::new(conversation), parsed)
}

/// One attempt to fold a conversation.
pub(crate) async fn fold(
    shared: &Arc<Shared>,
    conversation: &Arc<ClientConversation>,
    attempt: Attempt,
) -> PreparedBody {
    shared.folder.fold(&shared.fold_slots, conversation, attempt).await
}
