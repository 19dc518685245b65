//! The words of an answer as they come: what the model says, not what it thinks.

use super::chat;
use super::said::Carried;
use super::sse::{Event, Splitter};
use crate::format::Format;
use crate::json::{self, Object};

/// Reads the words of an answer, whole or streamed, in pieces of any size.
#[derive(Debug)]
pub struct Spoken {
    format: Format,
    carried: Carried,
    splitter: Splitter,
    body: Vec<u8>,
    heard: Heard,
    is_done: bool,
}

/// What an answer has beside its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heard {
    /// Words that came with the end.
    pub rest: String,
    /// What the model said where it would not answer, in the field that is for that.
    pub refusal: String,
    /// Whether it thought first, where it says so.
    pub has_thought: bool,
}

impl Spoken {
    /// A reader of an answer in this format.
    pub fn new(format: Format, carried: Carried) -> Spoken {
        Spoken {
            format,
            carried,
            splitter: Splitter::default(),
            body: Vec::new(),
            heard: Heard::default(),
            is_done: false,
        }
    }

    /// Takes some bytes, and gives the words in them. A whole answer gives all of its words at its end.
    pub fn feed(&mut self, bytes: &[u8]) -> String {
        match self.carried {
            Carried::Whole => {
                self.body.extend_from_slice(bytes);
                String::new()
            }
            Carried::Stream => {
                let events = self.splitter.feed(bytes);
                events.iter().map(|event| self.event(event)).collect()
            }
        }
    }

    /// Whether a stream has said that nothing follows.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// What is left when there is no more.
    pub fn end(mut self) -> Heard {
        if let Some(event) = self.splitter.end() {
            let rest = self.event(&event);
            self.heard.rest.push_str(&rest);
        }
        let body = std::mem::take(&mut self.body);
        if let Some(object) = std::str::from_utf8(&body).ok().and_then(Object::parse) {
            let rest = self.whole(&object);
            self.heard.rest.push_str(&rest);
        }
        self.heard
    }

    fn event(&mut self, event: &Event) -> String {
        let Some(data) = event.data() else { return String::new() };
        if data.trim() == "[DONE]" {
            self.is_done = true;
            return String::new();
        }
        let Some(object) = Object::parse(&data) else { return String::new() };
        let kind = object.text("type");
        let kind = kind.as_deref().or(event.name()).unwrap_or_default();
        match self.format {
            Format::Anthropic => match kind {
                "content_block_start" => {
                    object.some("content_block").map_or_else(String::new, |block| self.part(block))
                }
                "content_block_delta" => {
                    object.some("delta").map_or_else(String::new, |delta| self.part(delta))
                }
                "message_stop" => {
                    self.is_done = true;
                    String::new()
                }
                _ => String::new(),
            },
            Format::Responses => {
                self.heard.has_thought |= kind.starts_with("response.reasoning");
                let delta = object.text("delta").unwrap_or_default();
                match kind {
                    "response.output_text.delta" => return delta.into_owned(),
                    "response.refusal.delta" => self.heard.refusal.push_str(&delta),
                    "response.completed" | "response.failed" | "response.incomplete" => self.is_done = true,
                    _ => {}
                }
                String::new()
            }
            Format::Chat | Format::ShareGpt | Format::Hermes => {
                let Some(choice) = chat::first_choice(&object) else { return String::new() };
                let delta = choice.some("delta").or_else(|| choice.some("message"));
                delta.and_then(Object::parse).map_or_else(String::new, |delta| self.message(&delta))
            }
        }
    }

    fn whole(&mut self, body: &Object<'_>) -> String {
        match self.format {
            Format::Anthropic => self.content(body.some("content")),
            Format::Responses => {
                let items = body.some("output").and_then(json::array).unwrap_or_default();
                items
                    .into_iter()
                    .filter_map(Object::parse)
                    .map(|item| self.content(item.some("content")))
                    .collect()
            }
            Format::Chat | Format::ShareGpt | Format::Hermes => {
                let Some(choice) = chat::first_choice(body) else { return String::new() };
                let message = choice.some("message").and_then(Object::parse);
                message.map_or_else(String::new, |message| self.message(&message))
            }
        }
    }

    /// A message of Chat Completions, or a part of one.
    fn message(&mut self, message: &Object<'_>) -> String {
        let has = |key: &str| message.text(key).is_some_and(|text| !text.is_empty());
        self.heard.has_thought |= has("reasoning_content") || has("reasoning");
        self.heard.refusal.push_str(&message.text("refusal").unwrap_or_default());
        self.content(message.some("content"))
    }

    /// A content: a string, or parts.
    fn content(&mut self, content: Option<&str>) -> String {
        let Some(content) = content else { return String::new() };
        if let Some(parts) = json::array(content) {
            return parts.into_iter().map(|part| self.part(part)).collect();
        }
        json::string(content).map(|content| content.text.into_owned()).unwrap_or_default()
    }

    fn part(&mut self, part: &str) -> String {
        let Some(part) = Object::parse(part) else { return String::new() };
        let kind = part.text("type").unwrap_or_default();
        match &*kind {
            "thinking" | "thinking_delta" | "redacted_thinking" | "reasoning" => {
                self.heard.has_thought = true;
            }
            "refusal" => self.heard.refusal.push_str(&part.text("refusal").unwrap_or_default()),
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

    fn check(format: Format, carried: Carried, answer: &str, words: &str, has_thought: bool) {
        for cut in 0..=answer.len() {
            let bytes = answer.as_bytes();
            let mut spoken = Spoken::new(format, carried);
            let mut heard = spoken.feed(&bytes[..cut]) + &spoken.feed(&bytes[cut..]);
            let rest = spoken.end();
            heard.push_str(&rest.rest);
            assert_eq!((heard.as_str(), rest.has_thought), (words, has_thought), "{answer} cut at {cut}");
        }
    }

    #[test]
    fn words_are_told_from_thoughts() {
        let whole = r#"{"choices":[{"index":0,"message":{"reasoning_content":"Hm.","content":"Dé one."}}]}"#;
        check(Format::Chat, Carried::Whole, whole, "Dé one.", true);
        let parts = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"Done."}]}}]}"#;
        check(Format::Chat, Carried::Whole, parts, "Done.", true);
        let stream = "data: {\"choices\":[{\"delta\":{\"reasoning\":\"Hm\"}}]}\n\n: ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"D\u{e9}\"}}]}\r\n\r\n\
                      data: {\"choices\":[{\"delta\":{\"content\":\" one\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]";
        check(Format::Chat, Carried::Stream, stream, "Dé one", true);
        let whole = r#"{"content":[{"type":"thinking","thinking":"Hm."},{"type":"text","text":"Do"},{"type":"text","text":"ne."}]}"#;
        check(Format::Anthropic, Carried::Whole, whole, "Done.", true);
        let stream = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
                      event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Done.\"}}\n\n\
                      event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        check(Format::Anthropic, Carried::Stream, stream, "Done.", false);
        let stream = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Done.\"}\n\n";
        check(Format::Responses, Carried::Stream, stream, "Done.", false);
        let whole = r#"{"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"Done."}]}]}"#;
        check(Format::Responses, Carried::Whole, whole, "Done.", false);
    }

    #[test]
    fn what_is_odd_says_nothing() {
        for answer in [
            "",
            "{",
            "data: {\n\n",
            "data: 7\n\n",
            "{\"choices\":[{\"message\":{\"content\":7}}]}",
            "\u{feff}",
        ] {
            for carried in [Carried::Whole, Carried::Stream] {
                check(Format::Chat, carried, answer, "", false);
                check(Format::Anthropic, carried, answer, "", false);
            }
        }
    }

    #[test]
    fn a_refusal_has_a_field_of_its_own() {
        let mut spoken = Spoken::new(Format::Chat, Carried::Stream);
        assert_eq!(
            spoken.feed(b"data: {\"choices\":[{\"delta\":{\"refusal\":\"I won't\"}}]}\n\ndata: [DONE]\n\n"),
            ""
        );
        assert!(spoken.is_done());
        assert_eq!(spoken.end().refusal, "I won't");
    }
}
