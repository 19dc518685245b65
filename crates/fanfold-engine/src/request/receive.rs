//! Decodes a body: the new messages after a cached state, or all of them.

use fanfold_store::{BlobId, NodeId};
use fanfold_wire::{Conversation, DecodeError, Format, Incoming};

use crate::log::body_frame::Skeleton;
use crate::request::pipeline::Ask;
use crate::sessions::state::{DecodedBody, State, is_between_replies};

/// A decoded body, and the cached state if the body continues it.
///
/// The conversation, ids and positions of the state are in the body until the state advances.
pub(crate) struct Received {
    pub(crate) body: DecodedBody,
    pub(crate) continued: Option<Box<State>>,
}

/// Decodes a body. `parsed` is the same body if it was parsed before.
pub(crate) fn receive(
    ask: &Ask<'_>,
    parsed: Option<Incoming>,
    cached: Option<Box<State>>,
) -> Result<Received, DecodeError> {
    let parse = |format: Option<Format>, parsed: Option<Incoming>| match parsed
        .filter(|parsed| Some(parsed.format()) == format && parsed.text() == ask.body)
    {
        Some(parsed) => Ok(parsed),
        None => Incoming::open(ask.body, format),
    };
    let given = ask.terms.format;
    let Some(mut state) = cached else { return Ok(Received::whole(parse(given, parsed)?)) };
    // The first messages of a chat are valid in any format; only later ones decide which it is.
    let format = match (given, state.followed.conversation.format()) {
        (None, cached) if cached == Format::default() => None,
        (given, cached) => given.or(Some(cached)),
    };
    // A body that does not continue the cached state is decoded from its first message.
    let decode_whole = |parsed: Option<Incoming>| match parsed.filter(|_| format == given) {
        Some(parsed) => Ok(Received::whole(parsed)),
        None => Ok(Received::whole(Incoming::open(ask.body, given)?)),
    };
    let Ok(incoming) = parse(format, parsed) else { return decode_whole(None) };
    let n_cached = state.ids.len();
    let last = state.followed.conversation.messages().last();
    let is_between = is_between_replies(incoming.format(), last, incoming.message(n_cached));
    if !is_between || incoming.is_continued() {
        return decode_whole(Some(incoming));
    }
    let empty = Conversation::empty(Format::default());
    let mut conversation = std::mem::replace(&mut state.followed.conversation, empty);
    let changes = match conversation.continue_from(incoming) {
        Ok(changes) => changes,
        Err(incoming) => return decode_whole(Some(*incoming)),
    };
    let (mut ids, mut positions) = (std::mem::take(&mut state.ids), std::mem::take(&mut state.positions));
    let new = ids_of(ids.last().copied(), conversation.plain_messages(n_cached));
    positions.extend((n_cached as u32 + 1..).zip(&new).map(|(position, id)| (*id, position)));
    ids.extend(new);
    Ok(Received { body: DecodedBody { conversation, changes, ids, positions }, continued: Some(state) })
}

impl Received {
    fn whole(incoming: Incoming) -> Received {
        Received { body: whole(incoming), continued: None }
    }
}

/// The body without its messages; mostly the same as in the last request.
pub(crate) fn frame_of(ask: &Ask<'_>, body: &DecodedBody, cached: Option<&State>) -> (BlobId, Skeleton) {
    let skeleton = Skeleton::of(ask.body, &body.conversation);
    let known = cached.and_then(|state| state.frame.as_ref()).filter(|(_, known)| *known == skeleton);
    (known.map_or_else(|| skeleton.blob().0, |(id, _)| *id), skeleton)
}

/// Decodes all messages of a body.
pub(crate) fn whole(incoming: Incoming) -> DecodedBody {
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
