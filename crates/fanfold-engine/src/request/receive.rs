//! Decodes a body: the new messages after a cached state, or all of them.

use fanfold_store::{BlobId, NodeId};
use fanfold_wire::{Change, Conversation, DecodeError, Format, Incoming};

use crate::follow::folded_conversation::FoldedConversation;
use crate::follow::session_state::{
    CachedSession, DecodedConversation, MessageList, SessionState, is_between_replies,
};
use crate::log::body_frame::BodyFrame;
use crate::request::pipeline::RequestInput;

/// A decoded body.
pub(crate) enum ReceivedBody {
    /// The body continues the cached state, which has its messages. The changes by the new messages are not applied
    /// yet.
    Continued(Box<SessionState>, Vec<Change>),
    /// The body is decoded from its first message.
    Whole(Box<DecodedConversation>),
}

impl ReceivedBody {
    pub(crate) fn conversation(&self) -> &Conversation {
        match self {
            ReceivedBody::Continued(state, _) => &state.followed.conversation,
            ReceivedBody::Whole(body) => &body.conversation,
        }
    }

    pub(crate) fn messages(&self) -> &MessageList {
        match self {
            ReceivedBody::Continued(state, _) => &state.messages,
            ReceivedBody::Whole(body) => &body.messages,
        }
    }

    /// The state that the body continues.
    pub(crate) fn state(&self) -> Option<&SessionState> {
        match self {
            ReceivedBody::Continued(state, _) => Some(state),
            ReceivedBody::Whole(_) => None,
        }
    }
}

/// The format to parse a body in, if it is known.
pub(crate) fn format_of(input: &RequestInput<'_>, cached: Option<&CachedSession>) -> Option<Format> {
    let cached = cached.map(|cached| cached.state.followed.conversation.format());
    // The first messages of a chat are valid in any format, so only later messages determine the format.
    input.terms.format.or(cached.filter(|format| *format != Format::default()))
}

/// Parses a body. `parsed` is the same body if it was parsed before.
pub(crate) fn open_body(
    input: &RequestInput<'_>,
    parsed: Option<Incoming>,
    format: Option<Format>,
) -> Result<Incoming, DecodeError> {
    match parsed.filter(|parsed| Some(parsed.format()) == format && parsed.text() == input.body) {
        Some(parsed) => Ok(parsed),
        None => {
            Incoming::open(input.body, format).or_else(|_| Incoming::open(input.body, input.terms.format))
        }
    }
}

/// Decodes a body: the new messages if it continues a state, or else all of them in the configured format.
pub(crate) fn receive(
    input: &RequestInput<'_>,
    incoming: Incoming,
    format: Option<Format>,
    state: Option<Box<SessionState>>,
) -> Result<ReceivedBody, DecodeError> {
    let incoming = match state {
        Some(state) => match continue_state(state, incoming) {
            Ok(received) => return Ok(received),
            Err(incoming) => *incoming,
        },
        None => incoming,
    };
    let is_configured = format == input.terms.format;
    let incoming = if is_configured { incoming } else { Incoming::open(input.body, input.terms.format)? };
    Ok(ReceivedBody::Whole(Box::new(decode_whole(incoming))))
}

/// Adds the new messages of a body to a state. Returns a body that does not continue the state.
fn continue_state(mut state: Box<SessionState>, incoming: Incoming) -> Result<ReceivedBody, Box<Incoming>> {
    let SessionState { followed: FoldedConversation { conversation, .. }, messages, .. } = &mut *state;
    let n_cached = messages.ids.len();
    let last = conversation.messages().last();
    let is_between = is_between_replies(incoming.format(), last, incoming.message(n_cached));
    if !is_between || incoming.is_continued() {
        return Err(Box::new(incoming));
    }
    let changes = conversation.continue_from(incoming)?;
    messages.extend(ids_of(messages.ids.last().copied(), conversation.plain_messages(n_cached)));
    Ok(ReceivedBody::Continued(state, changes))
}

/// The frame of a body, with its id. The id is hashed only if the frame differs from the one of the last request.
pub(crate) fn frame_of(input: &RequestInput<'_>, body: &ReceivedBody) -> (BlobId, BodyFrame) {
    let frame = BodyFrame::new(input.body, body.conversation());
    let last = body.state().and_then(|state| state.frame.as_ref()).filter(|(_, last)| *last == frame);
    (last.map_or_else(|| frame.blob().0, |(id, _)| *id), frame)
}

/// Decodes all messages of a body.
pub(crate) fn decode_whole(incoming: Incoming) -> DecodedConversation {
    let (conversation, changes) = Conversation::read(incoming);
    let ids = ids_of(None, conversation.plain_messages(0));
    DecodedConversation { conversation, changes, messages: MessageList::new(ids) }
}

/// The ids of consecutive messages after a node, each without its cache markers.
pub(crate) fn ids_of<M: AsRef<str>>(tip: Option<NodeId>, messages: impl Iterator<Item = M>) -> Vec<NodeId> {
    let mut tip = tip;
    messages
        .map(|json| {
            let id = NodeId::new(tip, json.as_ref());
            tip = Some(id);
            id
        })
        .collect()
}
