//! 2. Every result follows its call, and every finished call has one result.
//!
//! A transcript cannot contain a result without its call, so this checks the encoded messages.

use std::collections::BTreeSet;

use fanfold_core::Policy;
use serde_json::Value;

use crate::cases::{Verdict, check_cases, fail};
use crate::drivers::{SentView, drive_case_as_chat};

/// Each call is directly followed by its result, and the first message except system messages is from the user.
pub(crate) fn check_sent(sent: &SentView<'_>) -> Verdict {
    check_messages(&sent.parsed())
}

fn check_messages(messages: &[Value]) -> Verdict {
    let mut waiting: BTreeSet<&str> = BTreeSet::new();
    for (i, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !waiting.remove(id) {
                return fail(format!("message {i} is a result of {id}, but no call before it needs one"));
            }
            continue;
        }
        if !waiting.is_empty() {
            return fail(format!("message {i} comes before the results of {waiting:?}"));
        }
        for call in message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice) {
            let id = call["id"].as_str().unwrap_or_default();
            if !waiting.insert(id) {
                return fail(format!("message {i} has two calls with the id {id}"));
            }
        }
    }
    // The remaining calls are still running: only results of the same step follow them.
    let first = messages
        .iter()
        .map(|message| message["role"].as_str().unwrap_or_default())
        .find(|role| *role != "system");
    match first {
        Some("user") | None => Ok(()),
        Some(role) => fail(format!("the first message after the system messages has the role {role}")),
    }
}

#[test]
fn results_follow_their_calls() {
    check_cases(4_000, &Policy::NAMES, |case| drive_case_as_chat(case, check_unless_untouched));
}

/// An unfolded conversation is sent unchanged, even if it is malformed.
fn check_unless_untouched(sent: &SentView<'_>) -> Verdict {
    if sent.view.is_untouched() { Ok(()) } else { check_sent(sent) }
}
