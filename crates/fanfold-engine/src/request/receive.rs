//! A body decoded: on from where its session was left, or from its first message.

use fanfold_store::{BlobId, NodeId};
use fanfold_wire::{Conversation, DecodeError, Format, Incoming};

use crate::engine::Engine;
use crate::log::body_frame::Skeleton;
use crate::request::pipeline::Ask;
use crate::sessions::state::{Arrived, State, is_between_replies};

impl Engine {
    /// Decodes a body: what is new to the session as it was left, or all of it.
    pub(crate) fn receive(
        &self,
        ask: &Ask<'_>,
        held: Option<Box<State>>,
    ) -> Result<(Arrived, Option<Box<State>>), DecodeError> {
        let open = |format: Option<Format>| match self.cache.arrived(ask.body, format) {
            Some(incoming) => Ok(incoming),
            None => Incoming::open(ask.body, format),
        };
        let Some(mut state) = held else { return Ok((whole(open(ask.terms.format)?), None)) };
        // The first messages of a chat may be those of any format: what comes later tells.
        let format = match (ask.terms.format, state.followed.conversation.format()) {
            (None, held) if held == Format::default() => None,
            (given, held) => given.or(Some(held)),
        };
        // What can't be read as going on may be read as it stands.
        let as_it_stands = |incoming: Option<Incoming>| match incoming.filter(|_| format == ask.terms.format)
        {
            Some(incoming) => Ok((whole(incoming), None)),
            None => Ok((whole(Incoming::open(ask.body, ask.terms.format)?), None)),
        };
        let Ok(incoming) = open(format) else { return as_it_stands(None) };
        let n_held = state.ids.len();
        let last = state.followed.conversation.messages().last();
        let is_between = is_between_replies(incoming.format(), last, incoming.message(n_held));
        if !is_between || incoming.is_continued() {
            return as_it_stands(Some(incoming));
        }
        let empty = Conversation::empty(Format::default());
        let mut conversation = std::mem::replace(&mut state.followed.conversation, empty);
        let changes = match conversation.continue_from(incoming) {
            Ok(changes) => changes,
            Err(incoming) => return as_it_stands(Some(*incoming)),
        };
        let mut ids = state.ids.clone();
        ids.extend(ids_of(ids.last().copied(), conversation.plain_messages(n_held)));
        Ok((Arrived { conversation, changes, ids }, Some(state)))
    }
}

/// What stands around the messages of a body, which is mostly what stood around them before.
pub(crate) fn frame_of(ask: &Ask<'_>, arrived: &Arrived, held: Option<&State>) -> (BlobId, Skeleton) {
    let skeleton = Skeleton::of(ask.body, &arrived.conversation);
    let known = held.and_then(|state| state.frame.as_ref()).filter(|(_, known)| *known == skeleton);
    (known.map_or_else(|| skeleton.blob().0, |(id, _)| *id), skeleton)
}

pub(crate) fn whole(incoming: Incoming) -> Arrived {
    let (conversation, changes) = Conversation::read(incoming);
    let ids = ids_of(None, conversation.plain_messages(0));
    Arrived { conversation, changes, ids }
}

/// The ids of messages behind one another, each without its dress.
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
