//! Reads an answer while it arrives, whatever its content type.
//!
//! Content types are unreliable: errors arrive as HTML pages, whole answers in place of a stream, and JSON labelled as
//! a stream. So the first character of the body decides how it is read.

use fanfold_wire::Format;
use fanfold_wire::reply::{ParsedReply, ReplyReader, TextReader, Transport, Usage, error_text};

use crate::answer::thinking::{strip_thinking, strip_unopened_thinking};
use crate::error::classify::error_from_body;
use crate::error::phrases::classify_message;
use crate::error::{ErrorClass, ProviderError};

/// Maximum size of an answer; a larger one is an error.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Number of bytes that are kept of a body for error messages.
const MAX_PAGE_BYTES: usize = 64 << 10;

/// The answer of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelAnswer {
    /// The text without thoughts.
    pub text: String,
    /// Token usage, if the provider reports it.
    pub usage: Option<Usage>,
    /// True if the output limit ended the answer.
    pub is_truncated: bool,
    /// The model that the provider reports.
    pub model: Option<String>,
}

/// Reads an answer from pieces of its body.
pub(crate) struct AnswerReader {
    format: Format,
    kind: BodyKind,
    n_bytes: usize,
}

enum BodyKind {
    /// Only white space has arrived.
    Unknown,
    Answer(Box<AnswerBody>),
    /// Neither JSON nor an event stream.
    Page(Vec<u8>),
}

struct AnswerBody {
    reply: ReplyReader,
    text: TextReader,
    transport: Transport,
    /// The first bytes, for error messages.
    start: Vec<u8>,
}

impl AnswerReader {
    pub(crate) fn new(format: Format) -> AnswerReader {
        AnswerReader { format, kind: BodyKind::Unknown, n_bytes: 0 }
    }

    /// Reads some bytes.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), ProviderError> {
        self.n_bytes += bytes.len();
        if self.n_bytes > MAX_ANSWER_BYTES {
            let message = format!("the answer is longer than {} MB", MAX_ANSWER_BYTES >> 20);
            return Err(ProviderError::new(ErrorClass::Broken, message));
        }
        if let BodyKind::Unknown = self.kind {
            self.kind = self.sniff(bytes);
        }
        let start = match &mut self.kind {
            BodyKind::Unknown => return Ok(()),
            BodyKind::Page(page) => page,
            BodyKind::Answer(body) => {
                body.reply.feed(bytes);
                body.text.feed(bytes);
                &mut body.start
            }
        };
        start.extend(bytes.iter().take(MAX_PAGE_BYTES.saturating_sub(start.len())));
        Ok(())
    }

    /// Returns whether the body is complete.
    pub(crate) fn is_done(&self) -> bool {
        matches!(&self.kind, BodyKind::Answer(body) if body.text.is_done())
    }

    /// Returns whether the model has finished, even if usage data may still follow.
    pub(crate) fn is_ended(&self) -> bool {
        let BodyKind::Answer(body) = &self.kind else { return false };
        body.transport == Transport::Stream && body.reply.so_far().is_ended
    }

    /// Number of bytes read.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// The answer after the end of the body.
    pub(crate) fn finish(self) -> Result<ModelAnswer, ProviderError> {
        let body = match self.kind {
            BodyKind::Unknown => return Err(ProviderError::new(ErrorClass::Empty, "the answer has no body")),
            BodyKind::Page(page) => {
                let message = format!("neither JSON nor an event stream: {}", error_text(&page));
                return Err(ProviderError::new(ErrorClass::Broken, message));
            }
            BodyKind::Answer(body) => *body,
        };
        let outcome = body.reply.end();
        if let Some(error) = failure(&outcome, body.transport, self.n_bytes) {
            return Err(error);
        }
        let reply = body.text.end();
        let text = strip_thinking(&reply.text);
        let stop = outcome.stop.as_deref().unwrap_or_default().to_ascii_lowercase();
        let is_blocked = matches!(
            &*stop,
            "content_filter" | "refusal" | "safety" | "recitation" | "prohibited_content" | "sensitive"
        );
        if is_blocked || (!reply.refusal.is_empty() && text.trim().is_empty()) {
            let has_reason = !reply.refusal.is_empty();
            let message = if has_reason { reply.refusal } else { format!("the model stopped with `{stop}`") };
            return Err(ProviderError::new(ErrorClass::Refused, message));
        }
        let is_truncated =
            matches!(&*stop, "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded");
        let text = strip_unopened_thinking(text);
        if text.trim().is_empty() {
            let is_answer = !stop.is_empty() || outcome.usage.is_some() || outcome.id.is_some();
            let reason = empty_reason(is_truncated, reply.has_thought, !outcome.calls.is_empty());
            return Err(match is_answer {
                true => ProviderError::new(ErrorClass::Empty, reason),
                false => body_without_answer(&body.start),
            });
        }
        Ok(ModelAnswer { text: text.to_owned(), usage: outcome.usage, is_truncated, model: outcome.model })
    }

    fn sniff(&self, bytes: &[u8]) -> BodyKind {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let transport = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => return BodyKind::Unknown,
            Some(b'{' | b'[') => Transport::Whole,
            // `data:`, `event:`, `id:`, `retry:`, or a comment.
            Some(b'd' | b'e' | b'i' | b'r' | b':') => Transport::Stream,
            Some(_) => return BodyKind::Page(Vec::new()),
        };
        let reply = ReplyReader::new(self.format, transport);
        let text = TextReader::new(self.format, transport);
        BodyKind::Answer(Box::new(AnswerBody { reply, text, transport, start: Vec::new() }))
    }
}

/// The error in a reply, if it has one or is incomplete.
fn failure(reply: &ParsedReply, transport: Transport, n_bytes: usize) -> Option<ProviderError> {
    if let Some(failure) = &reply.failure {
        return Some(error_from_body(&failure.raw));
    }
    if let Some(refusal) = reply.refusal() {
        let error = ProviderError::new(ErrorClass::Overflow, "the window is full");
        return Some(ProviderError { limit: refusal.limit, ..error });
    }
    if reply.is_ended {
        return None;
    }
    let message = match transport {
        Transport::Stream => format!("the stream closed before its end, after {n_bytes} bytes"),
        Transport::Whole => format!("invalid JSON after {n_bytes} bytes"),
    };
    Some(ProviderError::new(ErrorClass::Broken, message).transient())
}

/// The error for JSON with status 200 that contains no answer; it may be an error in an unknown format.
fn body_without_answer(start: &[u8]) -> ProviderError {
    let message = error_text(start);
    match classify_message(&message.to_lowercase()) {
        Some(class) => ProviderError::new(class, message),
        None => ProviderError::new(ErrorClass::Broken, format!("the body contains no answer: {message}")),
    }
}

fn empty_reason(is_cut: bool, has_thought: bool, has_calls: bool) -> &'static str {
    match (is_cut, has_thought, has_calls) {
        (true, _, _) => "the output limit was reached before any text; allow a longer answer",
        (false, _, true) => "the model called an unknown tool and wrote no text",
        (false, true, false) => "the model wrote only thoughts",
        (false, false, false) => "the answer has no text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_split(format: Format, answer: &str, cut: usize) -> Result<ModelAnswer, ProviderError> {
        let mut reader = AnswerReader::new(format);
        let (a, b) = answer.as_bytes().split_at(cut);
        reader.feed(a)?;
        reader.feed(b)?;
        reader.finish()
    }

    fn chunk(delta: &str, stop: &str) -> String {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{stop}}}]}}\n\n")
    }

    #[test]
    fn an_answer_split_at_every_byte_is_the_same() {
        let stream = [
            ": keep-alive\n\n".to_owned(),
            chunk(r#"{"role":"assistant","content":""}"#, "null"),
            chunk(r#"{"reasoning_content":"Hm…"}"#, "null"),
            chunk(r#"{"content":"<think>no</think>\n\n\u00c4 "}"#, "null"),
            chunk(r#"{"content":"good — day."}"#, "null"),
            chunk("{}", "\"stop\""),
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n".to_owned(),
        ]
        .concat();
        for cut in 0..=stream.len() {
            let answer = read_split(Format::Chat, &stream, cut).unwrap();
            assert_eq!(answer.text, "Ä good — day.", "cut at {cut}");
            assert_eq!(answer.usage.map(|usage| (usage.input, usage.output)), Some((5, 7)), "cut at {cut}");
            assert!(!answer.is_truncated);
        }
        // A stream that breaks off before the end of the model's text is an error at every byte.
        let ended = stream.find("\"stop\"").unwrap();
        for n_bytes in 1..ended {
            if !stream.is_char_boundary(n_bytes) {
                continue;
            }
            let error = read_split(Format::Chat, &stream[..n_bytes], 0).unwrap_err();
            assert_eq!(error.class, ErrorClass::Broken, "{n_bytes}");
            assert!(error.is_transient);
        }
    }

    #[test]
    fn unexpected_bodies_are_classified() {
        let cases = [
            ("", ErrorClass::Empty),
            ("\n\n", ErrorClass::Empty),
            ("<html><title>Welcome</title></html>", ErrorClass::Broken),
            ("OK", ErrorClass::Broken),
            (r#"{"choices":[{"message":{"content":"ha"#, ErrorClass::Broken),
            (r#"{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}"#, ErrorClass::Empty),
            (
                r#"{"choices":[{"message":{"content":null,"reasoning":"x"},"finish_reason":"length"}]}"#,
                ErrorClass::Empty,
            ),
            (r#"{"choices":[]}"#, ErrorClass::Broken),
            (r#"{"hello":"world"}"#, ErrorClass::Broken),
            (r#"{"message":"Invalid API key"}"#, ErrorClass::Auth),
            (r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#, ErrorClass::Server),
            (
                r#"{"choices":[{"message":{"content":null,"refusal":"I can't."},"finish_reason":"stop"}]}"#,
                ErrorClass::Refused,
            ),
            (
                r#"{"choices":[{"message":{"content":"so"},"finish_reason":"content_filter"}]}"#,
                ErrorClass::Refused,
            ),
            ("data: {\"error\":{\"message\":\"slow\",\"code\":429}}\n\n", ErrorClass::Rate),
            ("data: [DONE]\n\n", ErrorClass::Empty),
        ];
        for (body, class) in cases {
            let error = read_split(Format::Chat, body, 0).unwrap_err();
            let expected = if body == "data: [DONE]\n\n" {
                [ErrorClass::Empty, ErrorClass::Broken]
            } else {
                [class, class]
            };
            assert!(expected.contains(&error.class), "{body}: {error:?}");
        }
        let late = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let begun = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Do\"}}\n\n";
        assert_eq!(
            read_split(Format::Anthropic, &format!("{begun}{late}"), 9).unwrap_err().class,
            ErrorClass::Server
        );
        assert_eq!(read_split(Format::Anthropic, begun, 9).unwrap_err().class, ErrorClass::Broken);
    }

    #[test]
    fn an_answer_at_the_output_limit_is_truncated() {
        let cut = r#"{"choices":[{"message":{"content":"and then"},"finish_reason":"length"}]}"#;
        assert!(read_split(Format::Chat, cut, 7).unwrap().is_truncated);
        let cut = r#"{"id":"a","content":[{"type":"text","text":"and then"}],"stop_reason":"max_tokens"}"#;
        assert!(read_split(Format::Anthropic, cut, 7).unwrap().is_truncated);
    }

    #[test]
    fn the_size_of_an_answer_is_limited() {
        let mut reader = AnswerReader::new(Format::Chat);
        let flood = vec![b' '; 1 << 20];
        let n_taken = (0..100).take_while(|_| reader.feed(&flood).is_ok()).count();
        assert_eq!(n_taken, 32);
    }
}
