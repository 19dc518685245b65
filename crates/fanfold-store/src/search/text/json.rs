//! Parses the JSON of a message, even if a text in it was cut in the middle of a surrogate pair.

use std::borrow::Cow;

use serde_json::Value;

/// Parses JSON, replacing lone surrogates by U+FFFD.
pub(crate) fn parse_lenient(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok().or_else(|| match replace_lone_surrogates(json) {
        Cow::Owned(json) => serde_json::from_str(&json).ok(),
        Cow::Borrowed(_) => None,
    })
}

/// Replaces every escaped lone surrogate by `\ufffd`.
fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut replaced = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        match code_unit(json, at) {
            Some(0xd800..=0xdbff) if matches!(code_unit(json, at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                replaced.push_str(&json[copied..at]);
                replaced.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // Skip the backslash and the escaped character.
            _ => at += 1 + json[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    replaced.push_str(&json[copied..]);
    Cow::Owned(replaced)
}

/// Returns the code unit of an escape `\uXXXX` at a byte offset.
fn code_unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced_and_pairs_are_preserved() {
        let check = |json: &str, expected: &str| assert_eq!(parse_lenient(json), Some(Value::from(expected)));
        check(r#""a\ud83d""#, "a\u{fffd}");
        check(r#""\ude00\ud83d\ude00\ud83d\ud83d\ude00b""#, "\u{fffd}😀\u{fffd}😀b");
        check(r#""\\ud83d\ud83dé\n""#, "\\ud83d\u{fffd}é\n");
        check(r#""\ud83dA\uD83D""#, "\u{fffd}A\u{fffd}");
        assert_eq!(parse_lenient(r#""a\ud83d"#), None);
        assert_eq!(parse_lenient("not JSON"), None);
        assert_eq!(parse_lenient(r#""\"#), None);
    }
}
