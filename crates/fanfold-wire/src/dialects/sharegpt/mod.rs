//! ShareGPT trajectories: chat messages with `from` and `value`.

use crate::conversation::entry_map::EntryMap;
use crate::conversation::outgoing::{EncodeSource, OutMessage, SendItem};
use crate::dialects::chat::{self, Layout};
use crate::dialects::{Facts, MessageEncoder};
use crate::json::Object;

pub(crate) struct Dialect;

impl crate::dialects::Dialect for Dialect {
    fn facts(&self) -> &'static Facts {
        const { &Facts { name: "sharegpt", list_key: "conversations", ..Facts::DEFAULT } }
    }

    fn recognises_message(&self, message: &Object<'_>) -> bool {
        message.get("from").is_some() && message.get("value").is_some()
    }

    fn decode(&self, map: &mut EntryMap, messages: &[&str]) {
        messages.iter().for_each(|message| chat::decode(map, Layout::ShareGpt, message));
    }

    fn encode<'a>(
        &self,
        source: &EncodeSource<'a, '_>,
        items_to_send: &[SendItem<'_>],
        _: usize,
    ) -> Vec<OutMessage<'a>> {
        chat::encode(Layout::ShareGpt, source, items_to_send)
    }

    fn message_encoder(&self) -> Option<MessageEncoder> {
        Some(|source, send| chat::encode_message(Layout::ShareGpt, source, send))
    }
}
