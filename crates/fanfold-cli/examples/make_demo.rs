//! Writes the conversation that `fanfold demo` folds: an agent repairs a small invented project in about seventy steps.
//!
//! The project's files are in `examples/harbour/`. The results of the agent's calls are computed from them, so that the
//! conversation is consistent. The output is deterministic:
//!
//! ```text
//! cargo run -p fanfold-cli --example make_demo > crates/fanfold-cli/demo/conversation.json
//! ```

#![allow(clippy::print_stdout, reason = "the program prints the conversation")]
#![allow(clippy::unwrap_used, reason = "a program for developers may panic on an inconsistent script")]

#[path = "story/mod.rs"]
mod story;

use serde_json::json;

fn main() {
    let body = json!({ "model": "gpt-4o", "messages": story::messages(), "tools": story::tools() });
    println!("{}", serde_json::to_string(&body).unwrap());
}
