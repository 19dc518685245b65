//! Conversations as agents send them: request after request, each with all that was said before, valid by the rules of
//! its API. Parallel calls, thoughts, pictures, tools of servers, custom tools, marks that move, in several hands.

mod hand; //      how a client spells JSON
mod chat; //      messages of Chat Completions
mod responses; // items of Responses
mod anthropic; // messages of Anthropic

use serde_json::{Value, json};

use crate::Rng;
use crate::bodies::Kind;
use crate::kinds::{KINDS, text_of};
use crate::words::WORDS;
use hand::Hand;

/// A conversation in the making, or made.
pub struct Talk {
    /// The API.
    pub kind: Kind,
    /// What stands around the messages.
    frame: Value,
    messages: Vec<Value>,
    /// A request is sent after so many messages.
    stops: Vec<usize>,
    hand: Hand,
    rng: Rng,
    n_ids: usize,
    is_thinking: bool,
    is_marking: bool,
}

/// A call that was made, and what it gives back.
struct Made {
    id: String,
    tool: &'static str,
    arguments: Value,
    result: String,
    is_error: bool,
    has_picture: bool,
}

impl Talk {
    /// A conversation from a seed.
    pub fn new(kind: Kind, seed: u64) -> Talk {
        let mut talk = Talk::begun(kind, seed);
        let n_turns = 1 + talk.rng.below(4);
        for _ in 0..n_turns {
            let n_steps = talk.rng.below(7);
            talk.turn(n_steps);
        }
        talk
    }

    /// A conversation of one task and so many steps.
    pub fn of_steps(kind: Kind, seed: u64, n_steps: usize) -> Talk {
        let mut talk = Talk::begun(kind, seed);
        talk.turn(n_steps);
        talk
    }

    fn begun(kind: Kind, seed: u64) -> Talk {
        let mut rng = Rng::new(seed ^ 0x7a1c);
        let hand = Hand::of(rng.below(3));
        let (is_thinking, is_marking) = (rng.percent(40), rng.percent(60));
        let (frame, messages, stops) = (json!({ "model": "m" }), Vec::new(), Vec::new());
        let mut talk = Talk { kind, frame, messages, stops, hand, rng, n_ids: 0, is_thinking, is_marking };
        talk.begin();
        talk
    }

    /// The bodies of its requests, in order.
    pub fn bodies(&self) -> Vec<String> {
        self.stops.iter().map(|&n| self.body(&self.messages[..n])).collect()
    }

    /// Its last request with a call behind it that still runs: no provider takes it, and a client may send it.
    pub fn with_pending(mut self) -> String {
        let call = self.call();
        let made = [call];
        match self.kind {
            Kind::Anthropic => anthropic::step(&mut self, &made),
            Kind::Responses => responses::step(&mut self, &made),
            _ => chat::step(&mut self, &made),
        }
        while !self.is_pending() {
            self.messages.pop();
        }
        self.body(&self.messages)
    }

    fn is_pending(&self) -> bool {
        self.messages.last().is_some_and(|last| {
            let is_call = last["type"].as_str().is_some_and(|kind| kind.ends_with("_call"));
            is_call || last["role"] == "assistant"
        })
    }

    fn body(&self, messages: &[Value]) -> String {
        let mut body = self.frame.clone();
        let mut messages = messages.to_vec();
        if self.kind == Kind::Anthropic && self.is_marking {
            anthropic::mark(&mut messages);
        }
        body[if self.kind == Kind::Responses { "input" } else { "messages" }] = messages.into();
        self.hand.write(&body)
    }

    fn begin(&mut self) {
        let system = self.words(6, 40);
        match self.kind {
            Kind::Anthropic => anthropic::begin(self, &system),
            Kind::Responses => responses::begin(self, &system),
            _ => chat::begin(self, &system),
        }
    }

    fn turn(&mut self, n_steps: usize) {
        let said = self.words(2, 30);
        let has_picture = self.rng.percent(12);
        match self.kind {
            Kind::Anthropic => anthropic::user(self, &said, has_picture),
            Kind::Responses => responses::user(self, &said, has_picture),
            _ => chat::user(self, &said, has_picture),
        }
        self.stops.push(self.messages.len());
        for _ in 0..n_steps {
            let n_calls = [1, 1, 1, 2, 3, 4][self.rng.below(6)];
            let made: Vec<Made> = (0..n_calls).map(|_| self.call()).collect();
            match self.kind {
                Kind::Anthropic => anthropic::step(self, &made),
                Kind::Responses => responses::step(self, &made),
                _ => chat::step(self, &made),
            }
            self.stops.push(self.messages.len());
        }
        let answer = self.words(1, 40);
        match self.kind {
            Kind::Anthropic => anthropic::answer(self, &answer),
            Kind::Responses => responses::answer(self, &answer),
            _ => chat::answer(self, &answer),
        }
    }

    fn call(&mut self) -> Made {
        let id = self.id("call");
        let tool = self.rng.pick(&["read", "run", "patch"]);
        let arguments = match tool {
            "read" => {
                json!({ "path": format!("src/part_{}.rs", self.rng.below(6)), "limit": self.rng.below(400) })
            }
            "run" => json!({ "command": format!("cargo test -p part_{}", self.rng.below(6)) }),
            _ => json!({ "path": "src/lib.rs", "text": self.words(5, 120) }),
        };
        let (has_picture, is_error) = (self.rng.percent(8), self.rng.percent(12));
        let result = match self.rng.below(8) {
            0 => self.words(1, 8),
            1 => "the same words come again and again, as they do when a file is read twice".repeat(3),
            2 if self.kind != Kind::Anthropic => String::new(),
            _ => text_of(KINDS[self.rng.below(KINDS.len())], &mut self.rng).0,
        };
        Made { id, tool, arguments, result, is_error, has_picture }
    }

    fn id(&mut self, begin: &str) -> String {
        self.n_ids += 1;
        format!("{begin}_{}", self.n_ids)
    }

    /// So many words or more.
    fn words(&mut self, least: usize, more: usize) -> String {
        let n = least + self.rng.below(more);
        (0..n).map(|_| self.rng.pick(&WORDS)).collect::<Vec<_>>().join(" ")
    }

    /// The numbers below `n` in some order.
    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.rng.below(i + 1));
        }
        order
    }
}

const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
