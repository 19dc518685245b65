//! The size of the tool definitions, which every request contains.

#![allow(clippy::print_stdout, reason = "a test prints its measurements")]

use fanfold_core::Count as _;
use fanfold_tokens::o200k;
use serde_json::{Value, json};

use super::client::Client;
use super::stored_session::StoredSession;

#[test]
fn all_tools_together_cost_less_than_500_tokens() {
    let stored = StoredSession::new();
    let mut client = Client::start(&stored, &[]);
    let server_info = client.initialize();
    let listed = client.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    // Clients pass name, description and arguments to the model.
    let count = |value: &Value| o200k().count(&value.to_string()).0;
    let shown = |tool: &Value| json!({ "name": tool["name"], "description": tool["description"], "parameters": tool["inputSchema"] });
    let each: Vec<u64> = tools.iter().map(|tool| count(&shown(tool))).collect();
    let instructions = count(&server_info["result"]["instructions"]);
    let all: u64 = each.iter().sum::<u64>() + instructions;
    println!("search, recall, status: {each:?} tokens, instructions {instructions}: {all} in all");
    assert!(all < 500, "{all} tokens");
}
