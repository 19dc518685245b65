//! 2. Every result follows its call; every finished call has one result.
//!
//! A transcript cannot hold a result without its call; so this is a promise of what is encoded.

use std::collections::BTreeSet;

use fanfold_core::Policy;
use serde_json::Value;

use crate::cases::{Verdict, hold, no};
use crate::walks::{Sent, walk_case_in_chat};

/// Results stand directly behind their calls, one for each, and a person speaks first.
pub(crate) fn check_sent(sent: &Sent<'_>) -> Verdict {
    check_messages(&sent.parsed())
}

fn check_messages(messages: &[Value]) -> Verdict {
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for (i, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !waiting.remove(id) {
                return no(format!("message {i} is a result of {id}, which no call before it waits for"));
            }
            continue;
        }
        if !waiting.is_empty() {
            return no(format!("message {i} comes before the results of {waiting:?}"));
        }
        for call in message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice) {
            let id = call["id"].as_str().unwrap_or_default();
            if !waiting.insert(id) {
                return no(format!("message {i} has two calls {id}"));
            }
        }
    }
    // What still waits here is running: nothing but results stands behind its calls.
    let first = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap_or_default())
        .find(|role| *role != "system");
    match first {
        Some("user") | None => Ok(()),
        Some(role) => no(format!("the first message that is not the system's is the {role}'s")),
    }
}

#[test]
fn results_follow_their_calls() {
    hold(4_000, &Policy::NAMES, |case| walk_case_in_chat(case, check_unless_untouched));
}

/// What is sent untouched is sent as it came, odd or not.
fn check_unless_untouched(sent: &Sent<'_>) -> Verdict {
    if sent.view.is_untouched() { Ok(()) } else { check_sent(sent) }
}
