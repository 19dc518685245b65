//! An answer as it comes, whatever it says that it is.
//!
//! Content types lie: errors come as pages, whole answers come where a stream was asked for, and JSON comes under the
//! name of a stream. So the first letter of an answer decides what it is read as.

use fanfold_wire::Format;
use fanfold_wire::reply::{ReplyReader, TextReader, Transport, Usage, error_text};

use crate::answer::thinking::{ThinkingFilter, strip_unopened_thinking};
use crate::error::classify::error_from_body;
use crate::error::phrases::classify_message;
use crate::error::{ErrorClass, ProviderError};

/// More than this is no answer to a prompt.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// So much of a page is read for its words.
const MAX_PAGE_BYTES: usize = 64 << 10;

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelAnswer {
    /// What it said, without what it thought.
    pub text: String,
    /// What it cost, if the provider says so.
    pub usage: Option<Usage>,
    /// Whether it was stopped by the limit of its length.
    pub is_truncated: bool,
    /// The model that answered, by its own word.
    pub model: Option<String>,
}

/// Hears an answer.
pub(crate) struct AnswerReader {
    format: Format,
    kind: BodyKind,
    n_bytes: usize,
    thinking: ThinkingFilter,
    text: String,
}

enum BodyKind {
    /// Nothing but white space has come.
    Unknown,
    Answer {
        reply: Box<ReplyReader>,
        spoken: Box<TextReader>,
        carried: Transport,
        start: Vec<u8>,
    },
    /// It is neither JSON nor a stream.
    Page(Vec<u8>),
}

impl AnswerReader {
    pub(crate) fn new(format: Format) -> AnswerReader {
        AnswerReader {
            format,
            kind: BodyKind::Unknown,
            n_bytes: 0,
            thinking: ThinkingFilter::default(),
            text: String::new(),
        }
    }

    /// Takes some bytes, and gives the new words in them.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<String, ProviderError> {
        self.n_bytes += bytes.len();
        if self.n_bytes > MAX_ANSWER_BYTES {
            let words = format!("the answer is longer than {} MB", MAX_ANSWER_BYTES >> 20);
            return Err(ProviderError::new(ErrorClass::Broken, words));
        }
        if let BodyKind::Unknown = self.kind {
            self.kind = self.sniff(bytes);
        }
        match &mut self.kind {
            BodyKind::Unknown => Ok(String::new()),
            BodyKind::Page(page) => {
                page.extend(bytes.iter().take(MAX_PAGE_BYTES.saturating_sub(page.len())));
                Ok(String::new())
            }
            BodyKind::Answer { reply, spoken, start, .. } => {
                start.extend(bytes.iter().take(MAX_PAGE_BYTES.saturating_sub(start.len())));
                reply.feed(bytes);
                let piece = self.thinking.feed(&spoken.feed(bytes));
                self.text.push_str(&piece);
                Ok(piece)
            }
        }
    }

    /// Whether nothing more has to be waited for.
    pub(crate) fn is_done(&self) -> bool {
        matches!(&self.kind, BodyKind::Answer { spoken, .. } if spoken.is_done())
    }

    /// Whether the model has come to its end, even if the usage may still follow.
    pub(crate) fn is_ended(&self) -> bool {
        matches!(&self.kind, BodyKind::Answer { reply, carried: Transport::Stream, .. } if reply.so_far().is_ended)
    }

    /// How many bytes have come.
    pub(crate) fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// The answer, now that there is no more, and the words that came with its end.
    pub(crate) fn finish(mut self) -> Result<(ModelAnswer, String), ProviderError> {
        let (reply, spoken, carried, start) = match self.kind {
            BodyKind::Unknown => return Err(ProviderError::new(ErrorClass::Empty, "the answer has no body")),
            BodyKind::Page(page) => {
                let words = format!("it is neither JSON nor a stream: {}", error_text(&page));
                return Err(ProviderError::new(ErrorClass::Broken, words));
            }
            BodyKind::Answer { reply, spoken, carried, start } => (reply, spoken, carried, start),
        };
        let said = reply.end();
        let heard = spoken.end();
        let mut rest = self.thinking.feed(&heard.rest);
        rest.push_str(&self.thinking.finish());
        self.text.push_str(&rest);
        if let Some(failure) = &said.failure {
            return Err(error_from_body(&failure.raw));
        }
        if let Some(refusal) = said.refusal() {
            let mut fault = ProviderError::new(ErrorClass::Overflow, "the window is full");
            fault.limit = refusal.limit;
            return Err(fault);
        }
        if !said.is_ended {
            let words = match carried {
                Transport::Stream => {
                    format!("the stream closed before its end, after {} bytes", self.n_bytes)
                }
                Transport::Whole => format!("its JSON is broken, after {} bytes", self.n_bytes),
            };
            return Err(ProviderError::new(ErrorClass::Broken, words).transient());
        }
        let stop = said.stop.as_deref().unwrap_or_default().to_ascii_lowercase();
        let is_blocked = matches!(
            &*stop,
            "content_filter" | "refusal" | "safety" | "recitation" | "prohibited_content" | "sensitive"
        );
        if is_blocked || (!heard.refusal.is_empty() && self.text.trim().is_empty()) {
            let words =
                if heard.refusal.is_empty() { format!("it stopped for `{stop}`") } else { heard.refusal };
            return Err(ProviderError::new(ErrorClass::Refused, words));
        }
        let cut =
            matches!(&*stop, "length" | "max_tokens" | "max_output_tokens" | "model_context_window_exceeded");
        let text = strip_unopened_thinking(&self.text);
        if text.trim().is_empty() {
            let is_answer = !stop.is_empty() || said.usage.is_some() || said.id.is_some();
            return Err(match is_answer {
                true => ProviderError::new(
                    ErrorClass::Empty,
                    empty_reason(cut, heard.has_thought, !said.calls.is_empty()),
                ),
                false => body_without_answer(&start),
            });
        }
        let answer =
            ModelAnswer { text: text.to_owned(), usage: said.usage, is_truncated: cut, model: said.model };
        Ok((answer, rest))
    }

    fn sniff(&self, bytes: &[u8]) -> BodyKind {
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let carried = match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            None => return BodyKind::Unknown,
            Some(b'{' | b'[') => Transport::Whole,
            // `data:`, `event:`, `id:`, `retry:`, and a comment.
            Some(b'd' | b'e' | b'i' | b'r' | b':') => Transport::Stream,
            Some(_) => return BodyKind::Page(Vec::new()),
        };
        let reply = Box::new(ReplyReader::new(self.format, carried));
        let spoken = Box::new(TextReader::new(self.format, carried));
        BodyKind::Answer { reply, spoken, carried, start: Vec::new() }
    }
}

/// JSON of status 200 in which nothing answers: perhaps an error without its name.
fn body_without_answer(start: &[u8]) -> ProviderError {
    let words = error_text(start);
    match classify_message(&words.to_lowercase()) {
        Some(class) => ProviderError::new(class, words),
        None => ProviderError::new(ErrorClass::Broken, format!("there is no answer in it: {words}")),
    }
}

fn empty_reason(is_cut: bool, has_thought: bool, has_calls: bool) -> &'static str {
    match (is_cut, has_thought, has_calls) {
        (true, _, _) => "all it was allowed to write went into its thoughts: allow a longer answer",
        (false, _, true) => "it called a tool that it was not given, and said nothing",
        (false, true, false) => "it thought, and said nothing",
        (false, false, false) => "it has no words in it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hear(format: Format, answer: &str, cut: usize) -> Result<ModelAnswer, ProviderError> {
        let mut hearing = AnswerReader::new(format);
        let (a, b) = answer.as_bytes().split_at(cut);
        let mut heard = hearing.feed(a)?;
        heard.push_str(&hearing.feed(b)?);
        let (answer, rest) = hearing.finish()?;
        heard.push_str(&rest);
        assert_eq!(heard.trim(), answer.text.trim(), "what was given in pieces is the answer");
        Ok(answer)
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
            let answer = hear(Format::Chat, &stream, cut).unwrap();
            assert_eq!(answer.text, "Ä good — day.", "cut at {cut}");
            assert_eq!(answer.usage.map(|usage| (usage.input, usage.output)), Some((5, 7)), "cut at {cut}");
            assert!(!answer.is_truncated);
        }
        // And where it breaks off, it is broken at every byte before the model has ended.
        let ended = stream.find("\"stop\"").unwrap();
        for n_bytes in 1..ended {
            if !stream.is_char_boundary(n_bytes) {
                continue;
            }
            let fault = hear(Format::Chat, &stream[..n_bytes], 0).unwrap_err();
            assert_eq!(fault.class, ErrorClass::Broken, "{n_bytes}");
            assert!(fault.is_transient);
        }
    }

    #[test]
    fn bodies_that_lie() {
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
            let fault = hear(Format::Chat, body, 0).unwrap_err();
            let expected = if body == "data: [DONE]\n\n" {
                [ErrorClass::Empty, ErrorClass::Broken]
            } else {
                [class, class]
            };
            assert!(expected.contains(&fault.class), "{body}: {fault:?}");
        }
        let late = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
        let begun = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Do\"}}\n\n";
        assert_eq!(
            hear(Format::Anthropic, &format!("{begun}{late}"), 9).unwrap_err().class,
            ErrorClass::Server
        );
        assert_eq!(hear(Format::Anthropic, begun, 9).unwrap_err().class, ErrorClass::Broken);
    }

    #[test]
    fn an_answer_that_was_cut_says_so() {
        let cut = r#"{"choices":[{"message":{"content":"and then"},"finish_reason":"length"}]}"#;
        assert!(hear(Format::Chat, cut, 7).unwrap().is_truncated);
        let cut = r#"{"id":"a","content":[{"type":"text","text":"and then"}],"stop_reason":"max_tokens"}"#;
        assert!(hear(Format::Anthropic, cut, 7).unwrap().is_truncated);
    }

    #[test]
    fn a_flood_ends() {
        let mut hearing = AnswerReader::new(Format::Chat);
        let flood = vec![b' '; 1 << 20];
        let n_taken = (0..100).take_while(|_| hearing.feed(&flood).is_ok()).count();
        assert_eq!(n_taken, 32);
    }
}
