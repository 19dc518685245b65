use crate::conversation::entry_map::EntryMap;
use crate::conversation::outgoing::{EncodeSource, OutMessage, SendItem};
use crate::dialects::Api;
use crate::json::Object;

/// The constants of a dialect.
pub(crate) struct Facts {
    /// The name in flags, settings and labels.
    pub(crate) name: &'static str,
    /// The key of a body's message list.
    pub(crate) list_key: &'static str,
    /// True if a string may take the place of the message list.
    pub(crate) allows_text_for_list: bool,
    /// The key of a system text outside the message list.
    pub(crate) system_key: Option<&'static str>,
    /// The key of a field that states the number of messages.
    pub(crate) count_key: Option<&'static str>,
    /// True if the provider can store conversations.
    pub(crate) can_continue: bool,
    /// True if several list items can make up one reply of the model.
    pub(crate) has_replies_of_many_messages: bool,
    /// True if clients put cache markers into messages.
    pub(crate) has_cache_markers: bool,
}

impl Facts {
    /// The most common values.
    pub(crate) const DEFAULT: Facts = Facts {
        name: "",
        list_key: "messages",
        allows_text_for_list: false,
        system_key: None,
        count_key: None,
        can_continue: false,
        has_replies_of_many_messages: false,
        has_cache_markers: false,
    };
}

/// How a conversation is written in one format.
pub(crate) trait Dialect: Sync {
    fn facts(&self) -> &'static Facts;

    /// Returns whether only this dialect has a body with these fields.
    fn recognises_body(&self, _body: &Object<'_>) -> bool {
        false
    }

    /// Returns whether only this dialect has a message with these fields.
    fn recognises_message(&self, _message: &Object<'_>) -> bool {
        false
    }

    /// Returns whether only this dialect has content parts of this type.
    fn recognises_part(&self, _part_type: &str) -> bool {
        false
    }

    /// Returns whether the provider stores the beginning of the conversation, so that the list only continues it.
    fn is_continued(&self, _body: &Object<'_>) -> bool {
        false
    }

    /// Records what the messages add to a transcript. They arrived together, without their cache markers.
    fn decode(&self, map: &mut EntryMap, messages: &[&str]);

    /// Writes the messages to send. The rest of the body has `n_markers_outside` cache markers.
    fn encode<'a>(
        &self,
        source: &EncodeSource<'a, '_>,
        items_to_send: &[SendItem<'_>],
        n_markers_outside: usize,
    ) -> Vec<OutMessage<'a>>;

    /// The encoder of single messages, if no message depends on its neighbours.
    fn message_encoder(&self) -> Option<MessageEncoder> {
        None
    }

    /// The HTTP interface of the dialect; `None` for file formats.
    fn api(&self) -> Option<&'static dyn Api> {
        None
    }
}

/// Encodes one message; `None` omits it.
pub(crate) type MessageEncoder =
    for<'a, 't, 's, 'v> fn(&EncodeSource<'a, 't>, &'s SendItem<'v>) -> Option<OutMessage<'a>>;
