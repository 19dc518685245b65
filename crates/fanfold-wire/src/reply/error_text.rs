//! The text of an error in any wrapping: JSON, JSON inside a JSON string, an HTML page, plain text.

use serde_json::Value;

/// The bytes of an error that are read.
const MAX_ERROR: usize = 256 << 10;
/// The characters of an error in plain text that are read.
const MAX_TEXT: usize = 8 << 10;

/// The text of an error in lower case, with single spaces and without quotes.
pub(super) fn normalised_text(body: &[u8]) -> String {
    normalise(&collect_text(body))
}

/// The text of an error for people: the messages in its JSON, a page without its tags, or plain text.
pub fn error_text(body: &[u8]) -> String {
    let text = collect_text(body);
    let text = if text.trim_start().starts_with('<') { without_tags(&text) } else { text };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.trim_end_matches(" |").to_owned()
}

fn collect_text(body: &[u8]) -> String {
    let body = &body[..body.len().min(MAX_ERROR)];
    let text = String::from_utf8_lossy(body);
    let mut found = String::new();
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(value) => collect(&value, &mut found, 0),
        Err(_) => found.push_str(&text.chars().take(MAX_TEXT).collect::<String>()),
    }
    found
}

/// The text of an HTML page, without scripts and styles.
fn without_tags(page: &str) -> String {
    let mut text = String::new();
    let mut hidden = None;
    for piece in page.split('<').skip(1) {
        let (tag, rest) = piece.split_once('>').unwrap_or((piece, ""));
        let name = tag.split([' ', '\n', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        match &hidden {
            Some(end) if *end == name => hidden = None,
            Some(_) => continue,
            None if matches!(&*name, "script" | "style") => hidden = Some(format!("/{name}")),
            None => {}
        }
        if hidden.is_none() {
            text.push_str(rest);
            text.push(' ');
        }
    }
    text
}

/// The keys of error messages. Other keys may quote the client's request.
const MESSAGE_KEYS: &[&str] = &[
    "message",
    "msg",
    "Message",
    "code",
    "type",
    "__type",
    "status",
    "status_msg",
    "detail",
    "details",
    "error",
    "errors",
    "error_message",
    "errorMessage",
    "error_type",
    "reason",
    "raw",
    "metadata",
    "base_resp",
    "response",
    "cause",
    "innererror",
];

/// The keys of numbers that belong to a message.
const NUMBER_KEYS: &[&str] = &["n_ctx", "n_prompt_tokens", "status_code"];

fn collect(value: &Value, found: &mut String, depth: usize) {
    // No known error is wrapped more often.
    if depth > 12 {
        return;
    }
    match value {
        Value::String(text) => match text.trim_start().starts_with(['{', '[']) {
            true => match serde_json::from_str::<Value>(text) {
                Ok(inner) => collect(&inner, found, depth + 1),
                Err(_) => push(found, text),
            },
            false => push(found, text),
        },
        Value::Array(items) => items.iter().for_each(|item| collect(item, found, depth + 1)),
        Value::Object(fields) => {
            for (key, value) in fields {
                if MESSAGE_KEYS.contains(&key.as_str()) {
                    collect(value, found, depth + 1);
                } else if NUMBER_KEYS.contains(&key.as_str()) && value.is_number() {
                    push(found, &format!("{key}: {value}"));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn push(found: &mut String, text: &str) {
    found.push_str(text);
    found.push_str(" | ");
}

/// A text in lower case, with remaining escapes decoded.
fn normalise(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let c = match c {
            '\\' => match chars.next_if(|next| matches!(next, 'n' | 'r' | 't' | 'u')) {
                Some('u') => {
                    let digits: String =
                        (0..4).map_while(|_| chars.next_if(char::is_ascii_hexdigit)).collect();
                    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or(' ')
                }
                Some(_) => ' ',
                None => continue,
            },
            '\u{2019}' => '\'',
            c => c,
        };
        match c {
            '"' | '`' | '\\' => {}
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.extend(c.to_lowercase()),
        }
    }
    out.trim().to_owned()
}

/// The number that follows a phrase.
pub(super) fn number_after(text: &str, words: &str) -> Option<u64> {
    text.match_indices(words).find_map(|(at, _)| {
        let rest = text[at + words.len()..].trim_start_matches([' ', '(', '[', ':', '=', '<', '>']);
        let rest = rest.strip_prefix("about ").or_else(|| rest.strip_prefix("at least ")).unwrap_or(rest);
        leading_number(rest)
    })
}

/// The number that precedes a phrase.
pub(super) fn number_before(text: &str, words: &str) -> Option<u64> {
    text.match_indices(words).find_map(|(at, _)| {
        let head = text[..at].trim_end();
        let head = head.strip_suffix("tokens").unwrap_or(head).trim_end();
        let start = head.rfind(|c: char| !c.is_ascii_digit() && c != ',').map_or(0, |i| i + 1);
        // The character before the number may have several bytes.
        let start = (start..=head.len()).find(|i| head.is_char_boundary(*i))?;
        leading_number(head[start..].trim_start_matches(','))
    })
}

fn leading_number(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let mut digits = String::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let is_separator = *byte == b','
            && bytes.get(at + 1..at + 4).is_some_and(|next| next.iter().all(u8::is_ascii_digit));
        match byte {
            b'0'..=b'9' => digits.push(char::from(*byte)),
            b',' if is_separator && !digits.is_empty() => {}
            _ => break,
        }
        at += 1;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_in_every_wrapping() {
        let expected = "too long: 5 > 4";
        let bodies = [
            r#"{"error":{"message":"Too long: 5 > 4"}}"#,
            r#"[{"error":{"message":"Too\n long: 5 \u003e 4","errors":[]}}]"#,
            r#"{"error":{"message":"{\"error\":{\"message\":\"`Too` long: 5 > 4\"}}"}}"#,
            r#"{"error":"Too long: 5 > 4"}"#,
            r#"Error from provider: {\"message\":\"Too long: 5 \\u003e 4\"}"#,
            "Too long: 5 > 4",
        ];
        for body in bodies {
            let words = normalised_text(body.as_bytes());
            assert!(words.contains(expected), "{body} -> {words}");
        }
    }

    #[test]
    fn text_for_people_keeps_its_case() {
        let cases = [
            (
                r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":null}}"#,
                "Incorrect API key | invalid_request_error",
            ),
            (
                "<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>b {}</style></head>\n<body><h1 class=x>502 Bad Gateway</h1></body></html>",
                "502 Bad Gateway 502 Bad Gateway",
            ),
            ("  Not\n Found ", "Not Found"),
            ("{}", ""),
            ("<", ""),
        ];
        for (body, words) in cases {
            assert_eq!(error_text(body.as_bytes()), words, "{body}");
        }
    }

    #[test]
    fn quoted_requests_are_ignored() {
        let body = r#"{"detail":[{"type":"missing","loc":["body","model"],"msg":"Field required","input":{"content":"prompt is too long"}}]}"#;
        assert_eq!(normalised_text(body.as_bytes()), "missing | field required |");
    }

    #[test]
    fn numbers_are_found_next_to_phrases() {
        assert_eq!(number_after("limit is (200,000 tokens)", "limit is"), Some(200_000));
        assert_eq!(number_after("limit is 12, 3", "limit is"), Some(12));
        assert_eq!(number_after("limit is big, the limit is 7", "limit is"), Some(7));
        assert_eq!(number_before("(1,234 in the messages", "in the messages"), Some(1234));
        assert_eq!(number_before("é12 tokens in the messages", "in the messages"), Some(12));
        assert_eq!(number_before("in the messages", "in the messages"), None);
        assert_eq!(number_after("limit is 99999999999999999999999", "limit is"), None);
    }

    #[test]
    fn garbage_has_no_text() {
        for body in
            [&b""[..], b"{", b"\xff\xfe", b"\\u12", b"\\", b"[[[[[[[[[[[[[[[[\"x\"]]]]]]]]]]]]]]]]", b"null"]
        {
            let _ = normalised_text(body);
        }
    }
}
