//! The successive requests of conversations as agents send them, valid by the rules of their API.
//!
//! They contain parallel calls, reasoning, images, server tools, custom tools and moving cache markers, in several
//! styles of JSON.

mod json_style; // styles of JSON
mod chat; //       messages of Chat Completions
mod responses; //  items of Responses
mod anthropic; //  messages of Anthropic

use serde_json::{Value, json};

use crate::Rng;
use crate::generators::bodies::BodyFormat;
use crate::generators::tool_outputs::{KINDS, tool_output};
use crate::generators::words::WORDS;
use json_style::JsonStyle;

/// A generated conversation, and the prefixes of it that are sent as requests.
pub struct RequestSequence {
    /// The API.
    pub kind: BodyFormat,
    /// The body without its messages.
    frame: Value,
    messages: Vec<Value>,
    /// The number of messages in each request.
    request_lengths: Vec<usize>,
    style: JsonStyle,
    rng: Rng,
    n_ids: usize,
    has_reasoning: bool,
    has_cache_marks: bool,
}

/// A tool call and its result.
struct ToolCall {
    id: String,
    tool: &'static str,
    arguments: Value,
    result: String,
    is_error: bool,
    has_image: bool,
}

impl RequestSequence {
    /// Generates the conversation of a seed.
    pub fn new(kind: BodyFormat, seed: u64) -> RequestSequence {
        let mut sequence = RequestSequence::with_system(kind, seed);
        let n_turns = 1 + sequence.rng.below(4);
        for _ in 0..n_turns {
            let n_steps = sequence.rng.below(7);
            sequence.turn(n_steps);
        }
        sequence
    }

    /// Generates a conversation of one turn with `n_steps` steps.
    pub fn with_steps(kind: BodyFormat, seed: u64, n_steps: usize) -> RequestSequence {
        let mut sequence = RequestSequence::with_system(kind, seed);
        sequence.turn(n_steps);
        sequence
    }

    fn with_system(kind: BodyFormat, seed: u64) -> RequestSequence {
        let mut rng = Rng::new(seed ^ 0x7a1c);
        let style = JsonStyle::from_number(rng.below(3));
        let (has_reasoning, has_cache_marks) = (rng.percent(40), rng.percent(60));
        let (frame, messages, request_lengths) = (json!({ "model": "m" }), Vec::new(), Vec::new());
        let mut sequence = RequestSequence {
            kind,
            frame,
            messages,
            request_lengths,
            style,
            rng,
            n_ids: 0,
            has_reasoning,
            has_cache_marks,
        };
        sequence.add_system();
        sequence
    }

    /// The bodies of the requests, in order.
    pub fn bodies(&self) -> Vec<String> {
        self.request_lengths.iter().map(|&n| self.body(&self.messages[..n])).collect()
    }

    /// The body of the last request with an unanswered call at its end. Providers refuse it, but clients may send
    /// it.
    pub fn into_running_body(mut self) -> String {
        let call = self.call();
        let calls = [call];
        match self.kind {
            BodyFormat::Anthropic => anthropic::step(&mut self, &calls),
            BodyFormat::Responses => responses::step(&mut self, &calls),
            _ => chat::step(&mut self, &calls),
        }
        while !self.ends_in_call() {
            self.messages.pop();
        }
        self.body(&self.messages)
    }

    fn ends_in_call(&self) -> bool {
        self.messages.last().is_some_and(|last| {
            let is_call = last["type"].as_str().is_some_and(|kind| kind.ends_with("_call"));
            is_call || last["role"] == "assistant"
        })
    }

    fn body(&self, messages: &[Value]) -> String {
        let mut body = self.frame.clone();
        let mut messages = messages.to_vec();
        if self.kind == BodyFormat::Anthropic && self.has_cache_marks {
            anthropic::add_cache_marks(&mut messages);
        }
        body[if self.kind == BodyFormat::Responses { "input" } else { "messages" }] = messages.into();
        self.style.write(&body)
    }

    fn add_system(&mut self) {
        let system = self.words(6, 40);
        match self.kind {
            BodyFormat::Anthropic => anthropic::system(self, &system),
            BodyFormat::Responses => responses::system(self, &system),
            _ => chat::system(self, &system),
        }
    }

    fn turn(&mut self, n_steps: usize) {
        let text = self.words(2, 30);
        let has_image = self.rng.percent(12);
        match self.kind {
            BodyFormat::Anthropic => anthropic::user(self, &text, has_image),
            BodyFormat::Responses => responses::user(self, &text, has_image),
            _ => chat::user(self, &text, has_image),
        }
        self.request_lengths.push(self.messages.len());
        for _ in 0..n_steps {
            let n_calls = [1, 1, 1, 2, 3, 4][self.rng.below(6)];
            let calls: Vec<ToolCall> = (0..n_calls).map(|_| self.call()).collect();
            match self.kind {
                BodyFormat::Anthropic => anthropic::step(self, &calls),
                BodyFormat::Responses => responses::step(self, &calls),
                _ => chat::step(self, &calls),
            }
            self.request_lengths.push(self.messages.len());
        }
        let answer = self.words(1, 40);
        match self.kind {
            BodyFormat::Anthropic => anthropic::answer(self, &answer),
            BodyFormat::Responses => responses::answer(self, &answer),
            _ => chat::answer(self, &answer),
        }
    }

    fn call(&mut self) -> ToolCall {
        let id = self.id("call");
        let tool = self.rng.pick(&["read", "run", "patch"]);
        let arguments = match tool {
            "read" => {
                json!({ "path": format!("src/part_{}.rs", self.rng.below(6)), "limit": self.rng.below(400) })
            }
            "run" => json!({ "command": format!("cargo test -p part_{}", self.rng.below(6)) }),
            _ => json!({ "path": "src/lib.rs", "text": self.words(5, 120) }),
        };
        let (has_image, is_error) = (self.rng.percent(8), self.rng.percent(12));
        let result = match self.rng.below(8) {
            0 => self.words(1, 8),
            1 => "the same words come again and again, as they do when a file is read twice".repeat(3),
            2 if self.kind != BodyFormat::Anthropic => String::new(),
            _ => tool_output(KINDS[self.rng.below(KINDS.len())], &mut self.rng).0,
        };
        ToolCall { id, tool, arguments, result, is_error, has_image }
    }

    fn id(&mut self, prefix: &str) -> String {
        self.n_ids += 1;
        format!("{prefix}_{}", self.n_ids)
    }

    /// At least `min` and fewer than `min + range` words.
    fn words(&mut self, min: usize, range: usize) -> String {
        let n = min + self.rng.below(range);
        (0..n).map(|_| self.rng.pick(&WORDS)).collect::<Vec<_>>().join(" ")
    }

    /// The numbers below `n` in random order.
    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.rng.below(i + 1));
        }
        order
    }
}

const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
