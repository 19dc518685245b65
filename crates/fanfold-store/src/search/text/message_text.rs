//! The text of a message: what a person would say is written in it.
//!
//! It is made from the message's JSON alone, so any index can be made anew from the messages. Ids, signatures, types
//! and encoded bytes are no text; the arguments of a call are, also where they are JSON inside a string.

use serde_json::Value;

use crate::search::text::json::parse_lenient;

/// The text of a message in any format, a line for each piece of it. What is no JSON is all text.
pub fn message_text(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    match parse_lenient(json) {
        Some(message) => add(&message, KeyOwner::Message, &mut text),
        None => text.push_str(json),
    }
    text
}

/// Whose names the keys are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyOwner {
    /// The format's: some of them hold no text.
    Message,
    /// A tool's: whatever they hold was meant by somebody.
    Data,
}

fn add(value: &Value, inside: KeyOwner, text: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(_) if inside == KeyOwner::Message => {}
        Value::Number(_) if inside == KeyOwner::Message => {}
        Value::Bool(is_so) => add_line(if *is_so { "true" } else { "false" }, text),
        Value::Number(number) => add_line(&number.to_string(), text),
        Value::String(line) if looks_encoded(line) => {}
        Value::String(line) => add_line(line, text),
        Value::Array(items) => items.iter().for_each(|item| add(item, inside, text)),
        Value::Object(fields) => {
            let is_of_text = fields.get("type").is_some_and(|kind| kind == "text");
            for (key, field) in fields {
                match (inside, key.as_str()) {
                    // A document that is a text; of any other kind, these are bytes.
                    (KeyOwner::Message, "data") if is_of_text => add(field, inside, text),
                    // A result that is a number or a yes is what the tool said.
                    (KeyOwner::Message, "content" | "output") if field.is_number() || field.is_boolean() => {
                        add(field, KeyOwner::Data, text);
                    }
                    (KeyOwner::Message, key) if is_format_field(key) => {}
                    (KeyOwner::Message, "arguments" | "input" | "args" | "response") => add_data(field, text),
                    _ => add(field, inside, text),
                }
            }
        }
    }
}

/// Adds arguments, which most formats write as JSON inside a string.
fn add_data(value: &Value, text: &mut String) {
    let opened = value.as_str().and_then(parse_lenient);
    match opened {
        Some(opened @ (Value::Object(_) | Value::Array(_))) => add(&opened, KeyOwner::Data, text),
        _ => add(value, KeyOwner::Data, text),
    }
}

fn add_line(line: &str, text: &mut String) {
    if line.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Whether a field of the format itself holds no text.
fn is_format_field(key: &str) -> bool {
    key == "id"
        || key.ends_with("_id")
        || key.ends_with("Id")
        || key.ends_with("ignature")
        || matches!(
            key,
            "type"
                | "role"
                | "from"
                | "status"
                | "object"
                | "model"
                | "detail"
                | "phase"
                | "data"
                | "media_type"
                | "mime_type"
                | "mimeType"
                | "encrypted_content"
                | "cache_control"
                | "finish_reason"
                | "stop_reason"
                | "uuid"
                | "caller"
        )
}

/// Whether a string is bytes in disguise: long, without a space, and of the signs of base64 alone.
fn looks_encoded(line: &str) -> bool {
    if line.starts_with("data:") && line.find(";base64,").is_some_and(|at| at < 100) {
        return true;
    }
    let is_base64 =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    line.len() >= 400
        && line.bytes().all(is_base64)
        && line.bytes().any(|byte| byte.is_ascii_digit())
        && line.bytes().any(|byte| byte.is_ascii_uppercase())
        && line.bytes().any(|byte| byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(message_text(json), expected);
    }

    #[test]
    fn contents_calls_and_results_are_text() {
        check(r#"{"role":"user","content":"fix the parser"}"#, "fix the parser");
        check(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read_file","arguments":"{\"path\":\"a/b.rs\",\"id\":\"ORD-7\",\"line\":42}"}}]}"#,
            "read_file\na/b.rs\nORD-7\n42",
        );
        check(
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"ok"}]}]}"#,
            "ok",
        );
        check(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"Eq8="},{"type":"tool_use","id":"t","name":"grep","input":{"pattern":"x.*y"}}]}"#,
            "hm\ngrep\nx.*y",
        );
        check(r#"{"type":"function_call_output","call_id":"c","output":"done"}"#, "done");
        check(
            r#"{"role":"model","parts":[{"functionCall":{"name":"ls","args":{"dir":"/tmp"}}}]}"#,
            "ls\n/tmp",
        );
    }

    #[test]
    fn numbers_documents_and_cut_characters_are_text() {
        check(r#"{"role":"tool","content":4711,"index":3}"#, "4711");
        check(r#"{"type":"function_call_output","output":true}"#, "true");
        check(
            r#"{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"the minutes"},"title":"May"}]}"#,
            "the minutes\nMay",
        );
        check(
            r#"{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0"}}]}"#,
            "",
        );
        check(
            r#"{"role":"tool","content":"first\nsecond Größe 日本 \ud83d"}"#,
            "first\nsecond Größe 日本 \u{fffd}",
        );
        check(
            r#"{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"x\\ny\\ud83d\"}"}}]}"#,
            "f\nx\ny\u{fffd}",
        );
    }

    #[test]
    fn bytes_are_no_text() {
        let png = "iVBORw0KGgo9".repeat(100);
        check(
            &format!(
                r#"{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{png}"}}}},{{"type":"text","text":"see"}}]}}"#
            ),
            "see",
        );
        check(&format!(r#"{{"role":"tool","content":"{png}"}}"#), "");
    }

    #[test]
    fn what_is_no_json_is_all_text() {
        check("not JSON", "not JSON");
        check(r#"{"content":"\ud800"#, r#"{"content":"\ud800"#);
        check("{\"arguments\":null}", "");
        check("{\"arguments\":\"not json\"}", "not json");
    }
}
