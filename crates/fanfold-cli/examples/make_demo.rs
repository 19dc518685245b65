//! Writes the conversation that `fanfold demo` folds: an agent mends a small invented project over some seventy steps.
//!
//! The project's files lie in `examples/harbour/`; what the agent reads, greps and changes is computed from them, so
//! that the story holds together. The same program always writes the same bytes:
//!
//! ```text
//! cargo run -p fanfold-cli --example make_demo > crates/fanfold-cli/demo/conversation.json
//! ```

#![allow(clippy::print_stdout, reason = "the conversation is what this program is for")]
#![allow(clippy::unwrap_used, reason = "a program for developers may stop where its story has a hole")]

#[path = "story/mod.rs"]
mod story;

use serde_json::json;

fn main() {
    let body = json!({ "model": "gpt-4o", "messages": story::messages(), "tools": story::tools() });
    println!("{}", serde_json::to_string(&body).unwrap());
}
