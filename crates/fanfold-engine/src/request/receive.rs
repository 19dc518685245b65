//! Decodes a body: the new messages after a cached state, or all of them.

use fanfold_store::{BlobId, NodeId};
use fanfold_wire::{Conversation, DecodeError, Format, Incoming};

use crate::log::body_frame::BodyFrame;
use crate::request::pipeline::RequestInput;
use crate::sessions::state::{DecodedBody, State, is_between_replies};

/// A decoded body, and the cached state if the body continues it.
///
/// The conversation, ids and positions of the state are moved into the body. `State::advance` moves them back.
pub(crate) struct ReceivedBody {
    pub(crate) body: DecodedBody,
    pub(crate) continued: Option<Box<State>>,
}

/// Decodes a body. `parsed` is the same body if it was parsed before.
pub(crate) fn receive(
    input: &RequestInput<'_>,
    parsed: Option<Incoming>,
    cached: Option<Box<State>>,
) -> Result<ReceivedBody, DecodeError> {
    let parse = |format: Option<Format>, parsed: Option<Incoming>| match parsed
        .filter(|parsed| Some(parsed.format()) == format && parsed.text() == input.body)
    {
        Some(parsed) => Ok(parsed),
        None => Incoming::open(input.body, format),
    };
    let configured = input.terms.format;
    let Some(mut state) = cached else { return Ok(ReceivedBody::whole(parse(configured, parsed)?)) };
    // The first messages of a chat are valid in any format, so only later messages determine the format.
    let format = match (configured, state.followed.conversation.format()) {
        (None, cached) if cached == Format::default() => None,
        (configured, cached) => configured.or(Some(cached)),
    };
    // A body that does not continue the cached state is decoded from its first message.
    let receive_whole = |parsed: Option<Incoming>| match parsed.filter(|_| format == configured) {
        Some(parsed) => Ok(ReceivedBody::whole(parsed)),
        None => Ok(ReceivedBody::whole(Incoming::open(input.body, configured)?)),
    };
    let Ok(incoming) = parse(format, parsed) else { return receive_whole(None) };
    let n_cached = state.ids.len();
    let last = state.followed.conversation.messages().last();
    let is_between = is_between_replies(incoming.format(), last, incoming.message(n_cached));
    if !is_between || incoming.is_continued() {
        return receive_whole(Some(incoming));
    }
    let empty = Conversation::empty(Format::default());
    let mut conversation = std::mem::replace(&mut state.followed.conversation, empty);
    let changes = match conversation.continue_from(incoming) {
        Ok(changes) => changes,
        Err(incoming) => return receive_whole(Some(*incoming)),
    };
    let (mut ids, mut positions) = (std::mem::take(&mut state.ids), std::mem::take(&mut state.positions));
    let new = ids_of(ids.last().copied(), conversation.plain_messages(n_cached));
    positions.extend((n_cached as u32 + 1..).zip(&new).map(|(position, id)| (*id, position)));
    ids.extend(new);
    Ok(ReceivedBody { body: DecodedBody { conversation, changes, ids, positions }, continued: Some(state) })
}

impl ReceivedBody {
    fn whole(incoming: Incoming) -> ReceivedBody {
        ReceivedBody { body: decode_whole(incoming), continued: None }
    }
}

/// The frame of a body, with its id. The id is hashed only if the frame differs from the one of the last request.
pub(crate) fn frame_of(
    input: &RequestInput<'_>,
    body: &DecodedBody,
    cached: Option<&State>,
) -> (BlobId, BodyFrame) {
    let frame = BodyFrame::new(input.body, &body.conversation);
    let last = cached.and_then(|state| state.frame.as_ref()).filter(|(_, last)| *last == frame);
    (last.map_or_else(|| frame.blob().0, |(id, _)| *id), frame)
}

/// Decodes all messages of a body.
pub(crate) fn decode_whole(incoming: Incoming) -> DecodedBody {
    let (conversation, changes) = Conversation::read(incoming);
    let ids = ids_of(None, conversation.plain_messages(0));
    DecodedBody::new(conversation, changes, ids)
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
