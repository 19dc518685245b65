//! The text of a reply, without the model's thoughts.

use crate::dialects::Format;
use crate::json::{self, Object};
use crate::reply::reader::Transport;
use crate::reply::sse::{Splitter, SseEvent};

/// Reads the text of a reply, whole or streamed, in chunks of any size.
#[derive(Debug)]
pub struct TextReader {
    format: Format,
    transport: Transport,
    splitter: Splitter,
    body: Vec<u8>,
    pub(crate) reply: ReplyText,
    pub(crate) is_done: bool,
}

/// The text of a reply, and facts about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReplyText {
    /// The text.
    pub text: String,
    /// The text in the field for refusals.
    pub refusal: String,
    /// True if the reply has thoughts.
    pub has_thought: bool,
}

impl TextReader {
    /// A reader of one reply.
    pub fn new(format: Format, transport: Transport) -> TextReader {
        TextReader {
            format,
            transport,
            splitter: Splitter::default(),
            body: Vec::new(),
            reply: ReplyText::default(),
            is_done: false,
        }
    }

    /// Reads the next bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        match self.transport {
            Transport::Whole => self.body.extend_from_slice(bytes),
            Transport::Stream => {
                self.splitter.feed(bytes).iter().for_each(|event| self.event(event));
            }
        }
    }

    /// Returns whether a stream has sent its last event.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Ends the reply.
    pub fn end(mut self) -> ReplyText {
        if let Some(event) = self.splitter.end() {
            self.event(&event);
        }
        let body = std::mem::take(&mut self.body);
        let object = std::str::from_utf8(&body).ok().and_then(Object::parse);
        if let (Some(api), Some(object)) = (self.format.api(), object) {
            let text = api.text_of_whole(&mut self, &object);
            self.reply.text.push_str(&text);
        }
        self.reply
    }

    fn event(&mut self, event: &SseEvent) {
        let Some(data) = event.data() else { return };
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return;
        }
        let (Some(api), Some(object)) = (self.format.api(), Object::parse(&data)) else { return };
        let kind = object.text("type");
        let text = api.text_of_event(self, kind.as_deref().or(event.name()).unwrap_or_default(), &object);
        self.reply.text.push_str(&text);
    }

    /// The text of a content: a string, or parts.
    pub(crate) fn content(&mut self, content: Option<&str>) -> String {
        let Some(content) = content else { return String::new() };
        if let Some(parts) = json::array(content) {
            return parts.into_iter().map(|part| self.part(part)).collect();
        }
        json::string(content).map(|content| content.text.into_owned()).unwrap_or_default()
    }

    pub(crate) fn part(&mut self, part: &str) -> String {
        let Some(part) = Object::parse(part) else { return String::new() };
        let kind = part.text("type").unwrap_or_default();
        match &*kind {
            "thinking" | "thinking_delta" | "redacted_thinking" | "reasoning" => {
                self.reply.has_thought = true;
            }
            "refusal" => self.reply.refusal.push_str(&part.text("refusal").unwrap_or_default()),
            "text" | "text_delta" | "output_text" | "" => {
                return part.text("text").unwrap_or_default().into_owned();
            }
            _ => {}
        }
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(format: Format, transport: Transport, answer: &str, words: &str, has_thought: bool) {
        for cut in 0..=answer.len() {
            let bytes = answer.as_bytes();
            let mut reader = TextReader::new(format, transport);
            reader.feed(&bytes[..cut]);
            reader.feed(&bytes[cut..]);
            let reply = reader.end();
            assert_eq!(
                (reply.text.as_str(), reply.has_thought),
                (words, has_thought),
                "{answer} cut at {cut}"
            );
        }
    }

    #[test]
    fn thoughts_are_not_text() {
        let whole = r#"{"choices":[{"index":0,"message":{"reasoning_content":"Hm.","content":"Dé one."}}]}"#;
        check(Format::Chat, Transport::Whole, whole, "Dé one.", true);
        let parts = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"Done."}]}}]}"#;
        check(Format::Chat, Transport::Whole, parts, "Done.", true);
        let stream = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"Hm\"}}]}\n\n: ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"D\u{e9}\"}}]}\r\n\r\n\
                      data: {\"choices\":[{\"delta\":{\"content\":\" one\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]";
        check(Format::Chat, Transport::Stream, stream, "Dé one", true);
        let whole = r#"{"content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Do"},{"type":"text","text":"ne."}]}"#;
        check(Format::Anthropic, Transport::Whole, whole, "Done.", true);
        let stream = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
                      event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Done.\"}}\n\n\
                      event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        check(Format::Anthropic, Transport::Stream, stream, "Done.", false);
        let stream = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Done.\"}\n\n";
        check(Format::Responses, Transport::Stream, stream, "Done.", false);
        let whole = r#"{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"Done."}]}]}"#;
        check(Format::Responses, Transport::Whole, whole, "Done.", false);
    }

    #[test]
    fn malformed_replies_have_no_text() {
        for answer in [
            "",
            "{",
            "data: {\n\n",
            "data: 7\n\n",
            "{\"choices\":[{\"message\":{\"content\":7}}]}",
            "\u{feff}",
        ] {
            for transport in [Transport::Whole, Transport::Stream] {
                check(Format::Chat, transport, answer, "", false);
                check(Format::Anthropic, transport, answer, "", false);
            }
        }
    }

    #[test]
    fn refusals_are_read_from_their_field() {
        let mut reader = TextReader::new(Format::Chat, Transport::Stream);
        reader.feed(b"data: {\"choices\":[{\"delta\":{\"refusal\":\"I won't\"}}]}\n\ndata: [DONE]\n\n");
        assert!(reader.is_done());
        let reply = reader.end();
        assert_eq!((&*reply.text, &*reply.refusal), ("", "I won't"));
    }
}
