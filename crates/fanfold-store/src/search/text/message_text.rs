//! Extracts the searchable text of a message.
//!
//! The text depends on the message's JSON only, so an index can be rebuilt from the messages. It excludes ids,
//! signatures, types and encoded bytes, and includes the arguments of a call, even if they are JSON inside a string.

use serde_json::Value;

use crate::search::text::json::parse_lenient;

/// Returns the searchable text of a message in any format: the texts in it, separated by line breaks. Invalid JSON is
/// returned unchanged.
pub fn message_text(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    match parse_lenient(json) {
        Some(message) => add(&message, JsonKind::Message, &mut text),
        None => text.push_str(json),
    }
    text
}

/// The kind of JSON, which determines the meaning of its keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonKind {
    /// A message: some keys of the wire format do not contain text.
    Message,
    /// Arguments, or a result in `response` or as a number or boolean: all values are text except null and base64.
    ToolData,
}

fn add(value: &Value, kind: JsonKind, text: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(_) if kind == JsonKind::Message => {}
        Value::Number(_) if kind == JsonKind::Message => {}
        Value::Bool(value) => add_line(if *value { "true" } else { "false" }, text),
        Value::Number(number) => add_line(&number.to_string(), text),
        Value::String(line) if looks_encoded(line) => {}
        Value::String(line) => add_line(line, text),
        Value::Array(items) => items.iter().for_each(|item| add(item, kind, text)),
        Value::Object(fields) => {
            let is_text = fields.get("type").is_some_and(|name| name == "text");
            for (key, field) in fields {
                match (kind, key.as_str()) {
                    // A text document; the data of other documents is encoded bytes.
                    (JsonKind::Message, "data") if is_text => add(field, kind, text),
                    // A number or boolean may be a tool's whole result.
                    (JsonKind::Message, "content" | "output") if field.is_number() || field.is_boolean() => {
                        add(field, JsonKind::ToolData, text);
                    }
                    (JsonKind::Message, key) if is_format_field(key) => {}
                    (JsonKind::Message, "arguments" | "input" | "args" | "response") => add_data(field, text),
                    _ => add(field, kind, text),
                }
            }
        }
    }
}

/// Adds arguments or a `response`, which may be JSON inside a string.
fn add_data(value: &Value, text: &mut String) {
    let parsed = value.as_str().and_then(parse_lenient);
    match parsed {
        Some(parsed @ (Value::Object(_) | Value::Array(_))) => add(&parsed, JsonKind::ToolData, text),
        _ => add(value, JsonKind::ToolData, text),
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

/// Returns whether a key holds metadata, not text.
fn is_format_field(key: &str) -> bool {
    key == "id"
        || key.ends_with("_id")
        || key.ends_with("Id")
        // `signature`, `thoughtSignature`
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

/// Returns whether a string is a base64 data URL, or 400 or more base64 characters with digits, upper and lower case.
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
    fn includes_contents_calls_and_results() {
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
    fn includes_numeric_results_and_documents_and_replaces_lone_surrogates() {
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
    fn excludes_encoded_bytes() {
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
    fn invalid_json_is_returned_unchanged() {
        check("not JSON", "not JSON");
        check(r#"{"content":"\ud800"#, r#"{"content":"\ud800"#);
    }

    #[test]
    fn arguments_may_be_null_or_plain_text() {
        check("{\"arguments\":null}", "");
        check("{\"arguments\":\"not json\"}", "not json");
    }
}
