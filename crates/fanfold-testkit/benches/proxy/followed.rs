//! A conversation that grows by a step with each request, as an agent's does.

use fanfold_testkit::Rng;
use fanfold_testkit::kinds::{KINDS, text_of};
use serde_json::json;

pub(crate) const PATH: &str = "/v1/messages";
/// What a client of Anthropic sends along.
pub(crate) const HEADERS: [(&str, &str); 2] = [("x-api-key", "dummy"), ("anthropic-version", "2023-06-01")];
const MODEL: &str = "claude-sonnet-4-5";

/// A conversation; its messages are kept as text, so that the next body costs a copy.
pub(crate) struct Followed {
    rng: Rng,
    messages: String,
    n_steps: usize,
    is_stream: bool,
    seed: u64,
}

impl Followed {
    /// A conversation whose body is nearly so long, no two seeds alike.
    pub(crate) fn new(seed: u64, n_bytes: usize, is_stream: bool) -> Followed {
        let first = json!({ "role": "user", "content": format!("Find out why run {seed} loses records.") });
        let mut followed =
            Followed { rng: Rng::new(seed), messages: first.to_string(), n_steps: 0, is_stream, seed };
        while followed.messages.len() < n_bytes {
            let room = (n_bytes - followed.messages.len()).max(200);
            followed.step(room.min(6_000));
        }
        followed
    }

    /// One more step: a call and its result of at most so many bytes.
    pub(crate) fn step(&mut self, most: usize) {
        self.n_steps += 1;
        let id = format!("toolu_{}_{}", self.seed, self.n_steps);
        let (mut text, file) = text_of(KINDS[self.rng.below(KINDS.len())], &mut self.rng);
        let mut end = text.len().min(most.saturating_sub(250).max(40));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        let call = json!({ "role": "assistant", "content": [
            { "type": "text", "text": format!("Now {file}.") },
            { "type": "tool_use", "id": id, "name": "read", "input": { "path": format!("src/{file}") } }] });
        let text = if text.trim().is_empty() { "nothing".to_owned() } else { text };
        let result = json!({ "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": id, "content": text }] });
        self.messages.push_str(&format!(",{call},{result}"));
    }

    /// The body of the next request.
    pub(crate) fn body(&self) -> String {
        format!(
            "{{\"model\":\"{MODEL}\",\"max_tokens\":1024,\"stream\":{},\"system\":\"You are careful.\",\"tools\":[{{\"name\":\
             \"read\",\"description\":\"Reads a file.\",\"input_schema\":{{\"type\":\"object\",\"properties\":{{\"path\":\
             {{\"type\":\"string\"}}}}}}}}],\"messages\":[{}]}}",
            self.is_stream, self.messages
        )
    }
}
