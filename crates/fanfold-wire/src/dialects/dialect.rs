use crate::conversation::outgoing::{OutMessage, SendItem, EncodeSource};
use crate::conversation::entry_map::EntryMap;
use crate::dialects::Api;
use crate::json::Object;

/// How a conversation is written in one format.
pub(crate) trait Dialect: Sync {
    /// The name in flags, settings and labels.
    fn name(&self) -> &'static str;

    /// The key of a body's message list.
    fn list_key(&self) -> &'static str {
        "messages"
    }

    /// Returns whether a string may take the place of the message list.
    fn allows_text_for_list(&self) -> bool {
        false
    }

    /// The key of a system text outside the message list.
    fn system_key(&self) -> Option<&'static str> {
        None
    }

    /// The key of a field that states the number of messages.
    fn count_key(&self) -> Option<&'static str> {
        None
    }

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

    /// Returns whether the provider can store conversations at all.
    fn can_continue(&self) -> bool {
        false
    }

    /// Returns whether several list items can make up one reply of the model.
    fn has_replies_of_many_messages(&self) -> bool {
        false
    }

    /// Returns whether clients put cache markers into messages.
    fn has_cache_markers(&self) -> bool {
        false
    }

    /// Records what the messages add to a transcript. They arrived together, without their cache markers.
    fn decode(&self, map: &mut EntryMap, messages: &[&str]);

    /// Writes the messages to send. The rest of the body has `n_markers_outside` cache markers.
    fn encode<'a>(
        &self,
        source: &EncodeSource<'a, '_>,
        sends: &[SendItem<'_>],
        n_markers_outside: usize,
    ) -> Vec<OutMessage<'a>>;

    /// The encoder of single messages, if no message depends on its neighbours.
    fn message_encoder(&self) -> Option<MessageEncoder> {
        None
    }

    /// The provider's side of the dialect; file formats have none.
    fn api(&self) -> Option<&'static dyn Api> {
        None
    }
}

/// Encodes one message; `None` if it is left out.
pub(crate) type MessageEncoder = for<'a, 't, 's, 'v> fn(&EncodeSource<'a, 't>, &'s SendItem<'v>) -> Option<OutMessage<'a>>;
