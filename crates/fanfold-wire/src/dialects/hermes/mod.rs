//! Session files of Hermes: chat messages with a system text and a message count around them.

use crate::conversation::entry_map::EntryMap;
use crate::conversation::outgoing::{EncodeSource, OutMessage, SendItem};
use crate::dialects::chat::{self, Layout};
use crate::dialects::{Facts, MessageEncoder};
use crate::json::Object;

pub(crate) struct Dialect;

impl crate::dialects::Dialect for Dialect {
    fn facts(&self) -> &'static Facts {
        const {
            &Facts {
                name: "hermes",
                system_key: Some("system_prompt"),
                count_key: Some("message_count"),
                ..Facts::DEFAULT
            }
        }
    }

    fn recognises_body(&self, body: &Object<'_>) -> bool {
        let has = |key: &str| body.some(key).is_some();
        has("session_id") && ["platform", "system_prompt", "session_start"].into_iter().any(has)
    }

    fn decode(&self, map: &mut EntryMap, messages: &[&str]) {
        messages.iter().for_each(|message| chat::decode(map, Layout::OpenAi, message));
    }

    fn encode<'a>(
        &self,
        source: &EncodeSource<'a, '_>,
        items_to_send: &[SendItem<'_>],
        _: usize,
    ) -> Vec<OutMessage<'a>> {
        chat::encode(Layout::OpenAi, source, items_to_send)
    }

    fn message_encoder(&self) -> Option<MessageEncoder> {
        Some(|source, send| chat::encode_message(Layout::OpenAi, source, send))
    }
}
