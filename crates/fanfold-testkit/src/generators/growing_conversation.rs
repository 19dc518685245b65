//! A conversation that grows by one step with each request, like that of an agent.

use serde_json::json;

use crate::Rng;
use crate::generators::tool_outputs::{KINDS, tool_output};

/// The route that takes the bodies.
pub const PATH: &str = "/v1/messages";
/// The headers of an Anthropic client.
pub const HEADERS: [(&str, &str); 2] = [("x-api-key", "dummy"), ("anthropic-version", "2023-06-01")];
const MODEL: &str = "claude-sonnet-4-5";

/// A growing conversation. Its messages are stored as text, so that building a body is cheap.
pub struct GrowingConversation {
    rng: Rng,
    messages: String,
    n_steps: usize,
    is_stream: bool,
    seed: u64,
}

impl GrowingConversation {
    /// Creates a conversation of about `n_bytes` bytes, different for each seed.
    pub fn new(seed: u64, n_bytes: usize, is_stream: bool) -> GrowingConversation {
        let first = json!({ "role": "user", "content": format!("Find out why run {seed} loses records.") });
        let mut conversation = GrowingConversation {
            rng: Rng::new(seed),
            messages: first.to_string(),
            n_steps: 0,
            is_stream,
            seed,
        };
        while conversation.messages.len() < n_bytes {
            let room = (n_bytes - conversation.messages.len()).max(200);
            conversation.add_step(room.min(6_000));
        }
        conversation
    }

    /// Appends a step with at most `max_bytes` bytes.
    pub fn add_step(&mut self, max_bytes: usize) {
        self.n_steps += 1;
        let id = format!("toolu_{}_{}", self.seed, self.n_steps);
        let (mut text, file) = tool_output(KINDS[self.rng.below(KINDS.len())], &mut self.rng);
        let mut end = text.len().min(max_bytes.saturating_sub(250).max(40));
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
    pub fn body(&self) -> String {
        format!(
            "{{\"model\":\"{MODEL}\",\"max_tokens\":1024,\"stream\":{},\"system\":\"You are careful.\",\"tools\":[{{\"name\":\
             \"read\",\"description\":\"Reads a file.\",\"input_schema\":{{\"type\":\"object\",\"properties\":{{\"path\":\
             {{\"type\":\"string\"}}}}}}}}],\"messages\":[{}]}}",
            self.is_stream, self.messages
        )
    }
}
