//! Conversations as entries, from a seed.
//!
//! They contain several speakers, system messages in unusual places, parallel and unanswered calls, repeated reads,
//! edits, test runs, huge texts, media, reasoning and repeated texts.

use std::sync::Arc;

use fanfold_core::{Body, Call, Entry, Media, Origin, Outcome, Prompt, Speaker, Step};
use serde_json::{Value, json};

use crate::Rng;

/// The length of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConversationSize {
    /// 0 to 12 entries.
    Short,
    /// 4 to 40 entries.
    Medium,
    /// 40 to 150 entries.
    Long,
}

/// The conversation of a seed. Only its last step may have running calls.
pub fn conversation(seed: u64, size: ConversationSize) -> Vec<Entry> {
    let mut rng = Rng::new(seed);
    let n_entries = match size {
        ConversationSize::Short => rng.below(13),
        ConversationSize::Medium => 4 + rng.below(37),
        ConversationSize::Long => 40 + rng.below(111),
    };
    let mut writer = Writer::new(rng);
    while writer.entries.len() < n_entries {
        writer.entry();
    }
    if writer.rng.percent(15) {
        writer.leave_running();
    }
    writer.entries
}

/// A conversation as a Chat request with the call ids and contents of the entries.
pub fn chat_body(entries: &[Entry]) -> String {
    let messages: Vec<Value> = entries.iter().flat_map(chat_messages).collect();
    json!({ "model": "m", "messages": messages }).to_string()
}

/// The Chat messages of one entry.
pub fn chat_messages(entry: &Entry) -> Vec<Value> {
    match entry {
        Entry::Prompt(prompt) => {
            let content = content(&prompt.body, &prompt.media);
            vec![match prompt.speaker {
                Speaker::System => json!({ "role": "system", "content": content }),
                Speaker::User => json!({ "role": "user", "content": content }),
                Speaker::Harness | Speaker::Provider => {
                    json!({ "role": "user", "name": "harness", "content": content })
                }
            }]
        }
        Entry::Step(step) => {
            let mut reply = json!({ "role": "assistant", "content": step.text.as_str() });
            if !step.reasoning.is_empty() {
                reply["reasoning_content"] = step.reasoning.as_str().into();
            }
            if !step.calls.is_empty() {
                reply["tool_calls"] = step.calls.iter().map(chat_call).collect();
            }
            let results = step.calls.iter().filter_map(|call| {
                let outcome = call.result.as_ref()?;
                let content = content(&outcome.body, &outcome.media);
                Some(json!({ "role": "tool", "tool_call_id": call.id, "content": content }))
            });
            [reply].into_iter().chain(results).collect()
        }
    }
}

fn chat_call(call: &Call) -> Value {
    let function = json!({ "name": call.tool, "arguments": call.arguments.as_str() });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn content(body: &Body, media: &[Media]) -> Value {
    if media.is_empty() {
        return body.as_str().into();
    }
    let raws = media.iter().map(|media| serde_json::from_str(&media.raw).expect("media are JSON here"));
    [json!({ "type": "text", "text": body.as_str() })].into_iter().chain(raws).collect()
}

const FILES: [&str; 6] =
    ["src/parse.rs", "src/main.rs", "tests/it/header.rs", "README.md", "/etc/app/config.yaml", "src/ünï.rs"];

const WORDS: [&str; 48] = [
    "the",
    "header",
    "of",
    "a",
    "request",
    "is",
    "parsed",
    "twice",
    "and",
    "then",
    "it",
    "fails",
    "because",
    "parse_header",
    "returns",
    "None",
    "for",
    "42",
    "bytes",
    "in",
    "src/parse.rs:120",
    "error:",
    "timeout",
    "while",
    "reading",
    "0x7f3a",
    "https://example.org/a/b?c=d",
    "Überprüfung",
    "日本語",
    "テスト",
    "🦀",
    "naïve",
    "FAILED",
    "ok",
    "warning:",
    "unused",
    "variable",
    "`count`",
    "deadbeef",
    "12:30:01",
    "commit",
    "9fceb02",
    "retry",
    "queue",
    "worker-3",
    "null",
    "{}",
    "[x]",
];

struct Writer {
    rng: Rng,
    entries: Vec<Entry>,
    n_messages: usize,
    n_calls: usize,
    /// Earlier texts that may be repeated.
    earlier: Vec<String>,
}

impl Writer {
    fn new(rng: Rng) -> Writer {
        Writer { rng, entries: Vec::new(), n_messages: 0, n_calls: 0, earlier: Vec::new() }
    }

    fn entry(&mut self) {
        let is_start = self.entries.len() < 2;
        match self.rng.below(100) {
            0..35 if is_start => self.prompt(Speaker::System),
            0..95 if is_start => self.prompt(Speaker::User),
            0..3 => self.prompt(Speaker::System),
            3..8 => self.prompt(Speaker::Harness),
            8..22 => self.prompt(Speaker::User),
            _ => self.step(),
        }
    }

    fn prompt(&mut self, speaker: Speaker) {
        let origin = self.message();
        let text = match self.rng.below(100) {
            0..3 => String::new(),
            3..12 => self.log(120),
            12..20 => self.repeat(),
            20..30 => self.text(200),
            _ => self.text(24),
        };
        let media =
            if speaker == Speaker::User && self.rng.percent(8) { self.media(origin) } else { Vec::new() };
        let body = body(text, &media);
        self.entries.push(Entry::Prompt(Prompt { speaker, body, media, origin }));
    }

    fn step(&mut self) {
        let origin = self.message();
        let text = match self.rng.below(100) {
            0..40 => String::new(),
            40..43 => self.text(600),
            43..48 => self.repeat(),
            _ => self.text(30),
        };
        let reasoning = if self.rng.percent(20) { self.text(60) } else { String::new() };
        let n_calls = match self.rng.below(100) {
            0..25 => 0,
            25..80 => 1,
            80..90 => 2,
            90..97 => 3,
            _ => 4,
        };
        let calls: Vec<_> = (0..n_calls).map(|i| self.call(origin, i)).collect();
        let mut step = Step { text: Body::text(text), reasoning: Body::text(reasoning), calls, origin };
        for call in &mut step.calls {
            let is_never_answered = self.rng.percent(2);
            if !is_never_answered {
                call.result = Some(self.outcome(&call.tool));
            }
        }
        self.entries.push(Entry::Step(step));
    }

    fn leave_running(&mut self) {
        let Some(Entry::Step(step)) = self.entries.last_mut() else { return };
        let n_done = self.rng.below(step.calls.len().max(1));
        step.calls.iter_mut().skip(n_done).for_each(|call| call.result = None);
    }

    fn call(&mut self, step: Origin, part: usize) -> Call {
        self.n_calls += 1;
        let file = self.rng.pick(&FILES);
        let (tool, arguments) = match self.rng.below(100) {
            0..25 => ("read", json!({ "path": file }).to_string()),
            25..35 => {
                ("read", json!({ "path": file, "offset": self.rng.below(90), "limit": 20 }).to_string())
            }
            35..45 => {
                ("edit", json!({ "path": file, "old": self.text(20), "new": self.text(90) }).to_string())
            }
            45..50 => ("write", json!({ "path": file, "content": self.log(80) }).to_string()),
            50..62 => ("bash", json!({ "command": "cargo test parse_header" }).to_string()),
            62..70 => {
                ("bash", json!({ "command": format!("grep -rn {} src", self.rng.pick(&WORDS)) }).to_string())
            }
            70..75 => ("ls", r#"{"path":"."}"#.to_owned()),
            75..80 => ("get_user", json!({ "ids": (0..self.rng.below(60)).collect::<Vec<_>>() }).to_string()),
            80..84 => ("bash", "not json {\"command\": ls".to_owned()),
            84..86 => ("bash", self.text(120)),
            86..88 => ("noop", String::new()),
            _ => (
                "mcp__web__fetch",
                json!({ "url": format!("https://example.org/{}", self.rng.below(9)) }).to_string(),
            ),
        };
        let id = format!("call_{}", self.n_calls);
        let origin = Origin { message: step.message, part: part as u32 };
        Call { id, tool: tool.to_owned(), arguments: Body::text(arguments), result: None, origin }
    }

    fn outcome(&mut self, tool: &str) -> Outcome {
        let origin = self.message();
        let text = match self.rng.below(100) {
            0..4 => String::new(),
            4..16 => self.repeat(),
            16..22 => self.text(900),
            22..27 => self.dump(),
            27..55 => self.log(60),
            _ if tool == "bash" => self.test_run(),
            _ => self.text(40),
        };
        let media = if self.rng.percent(4) { self.media(origin) } else { Vec::new() };
        Outcome { body: body(text, &media), is_error: self.rng.percent(6), media, origin }
    }

    fn message(&mut self) -> Origin {
        self.n_messages += 1;
        Origin::message(self.n_messages - 1)
    }

    /// At most `max` words in lines of different lengths.
    fn text(&mut self, max: usize) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.rng.below(max) {
            text.push_str(self.rng.pick(&WORDS));
            text.push_str(match self.rng.below(40) {
                0..5 => "\n",
                5 => "\n\n",
                6 => "\t",
                7 => "  ",
                _ => " ",
            });
        }
        if self.rng.percent(70) {
            text.truncate(text.trim_end().len());
        }
        self.remember(text)
    }

    /// At most `max` similar lines.
    fn log(&mut self, max: usize) -> String {
        let mut text = String::new();
        for n in 0..1 + self.rng.below(max) {
            let (a, b) = (self.rng.pick(&WORDS), self.rng.pick(&WORDS));
            text.push_str(&format!(
                "{n}: 2024-05-01T12:{:02}:00 {a} request {} {b}\n",
                n % 60,
                self.rng.below(9_999)
            ));
        }
        self.remember(text)
    }

    fn test_run(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..1 + self.rng.below(40) {
            let verdict = if self.rng.percent(10) { "FAILED" } else { "ok" };
            text.push_str(&format!("test {}_{} ... {verdict}\n", self.rng.pick(&WORDS), self.rng.below(50)));
        }
        text.push_str("test result: FAILED. 12 passed; 1 failed");
        self.remember(text)
    }

    /// One long line of JSON.
    fn dump(&mut self) -> String {
        let rows: Vec<_> = (0..self.rng.below(60))
            .map(|i| json!({ "id": i, "name": self.rng.pick(&WORDS), "path": self.rng.pick(&FILES), "note": null }))
            .collect();
        self.remember(json!({ "total": rows.len(), "rows": rows }).to_string())
    }

    /// An exact copy of an earlier text.
    fn repeat(&mut self) -> String {
        if self.earlier.is_empty() {
            return self.text(30);
        }
        self.earlier[self.rng.below(self.earlier.len())].clone()
    }

    fn remember(&mut self, text: String) -> String {
        if self.earlier.len() < 12 {
            self.earlier.push(text.clone());
        } else {
            let at = self.rng.below(12);
            self.earlier[at].clone_from(&text);
        }
        text
    }

    fn media(&mut self, origin: Origin) -> Vec<Media> {
        let one = |part: usize, n: usize| {
            Media {
            label: "image/png".to_owned(),
            raw: Arc::from(
                json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,iVBORw{n}") } })
                    .to_string(),
            ),
            origin: Origin { message: origin.message, part: part as u32 + 1 },
        }
        };
        (0..1 + self.rng.below(2)).map(|part| one(part, self.rng.below(5))).collect()
    }
}

/// A body whose original includes its media, like those that fanfold-wire decodes.
fn body(text: String, media: &[Media]) -> Body {
    if media.is_empty() {
        return Body::text(text);
    }
    let raws: Vec<&str> = media.iter().map(|media| &*media.raw).collect();
    let first = json!({ "type": "text", "text": text });
    let raw = format!("[{first},{}]", raws.join(","));
    Body::with_raw(text, raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_conversation() {
        for seed in 0..20 {
            assert_eq!(
                conversation(seed, ConversationSize::Long),
                conversation(seed, ConversationSize::Long)
            );
        }
    }

    #[test]
    fn all_sizes_occur() {
        let lengths: Vec<_> =
            (0..200).map(|seed| conversation(seed, ConversationSize::Short).len()).collect();
        assert!(lengths.contains(&0) && lengths.contains(&12));
        assert!((0..50).all(|seed| conversation(seed, ConversationSize::Long).len() >= 40));
    }
}
