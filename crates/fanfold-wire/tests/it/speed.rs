//! Time is linear in the bytes: each test would take minutes if it were quadratic.

use fanfold_core::{Item, Voice};
use fanfold_wire::{Conversation, Format};

use crate::contract::{transcript_of, whole};

fn through(body: &str, format: Format) {
    let (conversation, changes) = Conversation::decode(body, Some(format)).unwrap();
    let transcript = transcript_of(changes);
    let mut view = whole(&transcript);
    assert_eq!(conversation.encode(&transcript, &view), body);
    view.items.push(Item::Note { text: "note".into(), voice: Voice::Fanfold });
    assert!(!conversation.encode(&transcript, &view).is_empty());
}

#[test]
fn unanswered_calls_take_linear_time() {
    let call = r#"{"id":"a","function":{"name":"f","arguments":"{}"}},"#.repeat(100_000);
    let body = format!(
        r#"[{{"role":"user","content":"x"}},{{"role":"assistant","tool_calls":[{}]}}]"#,
        call.trim_end_matches(',')
    );
    through(&body, Format::Chat);
}

#[test]
fn orphan_results_take_linear_time() {
    let result = r#"{"type":"tool_result","tool_use_id":"a","content":"x"},"#.repeat(100_000);
    let body = format!(r#"[{{"role":"user","content":[{}]}}]"#, result.trim_end_matches(','));
    through(&body, Format::Anthropic);
}

#[test]
fn messages_of_one_role_take_linear_time() {
    let message = r#"{"role":"user","content":"x"},"#.repeat(100_000);
    through(&format!("[{}]", message.trim_end_matches(',')), Format::Anthropic);
}

#[test]
fn deep_nesting_takes_linear_time() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for format in Format::ALL {
        through(
            &format!(
                r#"[{{"role":"user","from":"human","type":"message","value":{deep},"content":{deep}}}]"#
            ),
            format,
        );
    }
}

#[test]
fn long_lines_take_linear_time() {
    let line = "x\\n\\u00e9<tool_call>".repeat(500_000);
    for format in Format::ALL {
        let body = format!(
            r#"[{{"role":"user","from":"human","value":"hi","content":"hi"}},{{"role":"assistant","from":"gpt","type":"message","value":"{line}","content":"{line}"}}]"#
        );
        through(&body, format);
    }
}
