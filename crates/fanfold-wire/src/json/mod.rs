//! A JSON parser that returns slices of its input instead of values.
//!
//! `serde_json` has validated the whole body before. The parser does not recurse, so nesting depth is unlimited. It
//! does not panic on invalid JSON; it returns fewer fields or items.

mod splices;

pub(crate) use splices::{Splices, with_field, without_fields};

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::RawValue;

/// A `"key": value` pair of an object.
#[derive(Debug, Clone)]
pub(crate) struct Field<'a> {
    pub(crate) key: Cow<'a, str>,
    pub(crate) value: &'a str,
    /// From the key's first quote to the value's last byte, in the object's text.
    pub(crate) span: Range<usize>,
}

/// The fields of an object in order, including duplicate keys.
#[derive(Debug, Clone)]
pub(crate) struct Object<'a> {
    pub(crate) raw: &'a str,
    pub(crate) fields: Vec<Field<'a>>,
}

impl<'a> Object<'a> {
    /// The fields of a text that is an object.
    pub(crate) fn parse(raw: &'a str) -> Option<Object<'a>> {
        Object::parse_with(raw, |_, at| skip_value(raw.as_bytes(), at))
    }

    /// Parses an object, and in the same pass the items of the first field among `keys` that is an array.
    pub(crate) fn parse_and_list(raw: &'a str, keys: &[&str]) -> Option<(Object<'a>, Option<List<'a>>)> {
        let mut list = None;
        let object = Object::parse_with(raw, |key, at| {
            let is_list_key = list.is_none() && keys.contains(&key);
            match if is_list_key { items(raw, at) } else { None } {
                Some((items, end)) => {
                    list = Some(List { raw: &raw[at..end], items });
                    end
                }
                None => skip_value(raw.as_bytes(), at),
            }
        })?;
        Some((object, list))
    }

    /// Parses an object whose values end where `end_of` says.
    fn parse_with(raw: &'a str, mut end_of: impl FnMut(&str, usize) -> usize) -> Option<Object<'a>> {
        let bytes = raw.as_bytes();
        let mut at = skip_space(bytes, 0);
        if bytes.get(at) != Some(&b'{') {
            return None;
        }
        at = skip_space(bytes, at + 1);
        let mut fields = Vec::with_capacity(8);
        while bytes.get(at) == Some(&b'"') {
            let key_end = skip_string(bytes, at);
            let colon = skip_space(bytes, key_end);
            let value_start = skip_space(bytes, colon + 1);
            let Some(key) = raw.get(at..key_end) else { break };
            let key = string(key).map_or(Cow::Borrowed(""), |key| key.text);
            let value_end = end_of(&key, value_start);
            let Some(value) = raw.get(value_start..value_end) else { break };
            fields.push(Field { key, value, span: at..value_end });
            at = skip_space(bytes, value_end);
            if bytes.get(at) == Some(&b',') {
                at = skip_space(bytes, at + 1);
            }
        }
        Some(Object { raw, fields })
    }

    /// The value of a key. The last of duplicate keys counts, as in other parsers.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.fields.iter().rev().find(|field| field.key == key).map(|field| field.value)
    }

    /// The value of a key, unless it is null.
    pub(crate) fn some(&self, key: &str) -> Option<&'a str> {
        self.get(key).filter(|value| *value != "null")
    }

    /// The text of a key whose value is a string.
    pub(crate) fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(string).map(|text| text.text)
    }

    /// The range of one of the object's values in its text.
    pub(crate) fn span(&self, value: &str) -> Range<usize> {
        span(self.raw, value)
    }
}

/// The `text` of an object with this `type`, as a JSON string.
pub(crate) fn text_of_type<'a>(object: &'a str, type_name: &str) -> Option<&'a str> {
    let object = Object::parse(object)?;
    object.some("text").filter(|_| object.text("type").as_deref() == Some(type_name))
}

/// An array with its items.
#[derive(Debug, Clone)]
pub(crate) struct List<'a> {
    pub(crate) raw: &'a str,
    pub(crate) items: Vec<&'a str>,
}

/// The items of a text that is an array.
pub(crate) fn array(raw: &str) -> Option<Vec<&str>> {
    items(raw, skip_space(raw.as_bytes(), 0)).map(|(items, _)| items)
}

/// The items of an array, and its end.
fn items(raw: &str, open: usize) -> Option<(Vec<&str>, usize)> {
    let bytes = raw.as_bytes();
    if bytes.get(open) != Some(&b'[') {
        return None;
    }
    let mut at = skip_space(bytes, open + 1);
    let mut items = Vec::new();
    while at < bytes.len() && bytes[at] != b']' {
        let end = skip_value(bytes, at);
        let Some(item) = raw.get(at..end).filter(|item| !item.is_empty()) else { break };
        items.push(item);
        at = skip_space(bytes, end);
        if bytes.get(at) == Some(&b',') {
            at = skip_space(bytes, at + 1);
        }
    }
    let end = if bytes.get(at) == Some(&b']') { at + 1 } else { skip_value(bytes, open) };
    Some((items, end))
}

/// The text of a JSON string.
#[derive(Debug, Clone)]
pub(crate) struct Text<'a> {
    pub(crate) text: Cow<'a, str>,
    /// False if half a surrogate pair was replaced.
    pub(crate) is_exact: bool,
}

/// Decodes a JSON string.
pub(crate) fn string(raw: &str) -> Option<Text<'_>> {
    let inner = inner(raw)?;
    if find_either(inner.as_bytes(), 0, [b'\\', b'\\']) == inner.len() {
        return Some(Text { text: Cow::Borrowed(inner), is_exact: true });
    }
    let mut text = String::with_capacity(inner.len());
    let mut is_exact = true;
    for (_, unit) in Units::new(inner) {
        match unit {
            Unit::Run(run) => text.push_str(run),
            Unit::Char(c) => text.push(c),
            Unit::Broken => {
                text.push(char::REPLACEMENT_CHARACTER);
                is_exact = false;
            }
        }
    }
    Some(Text { text: Cow::Owned(text), is_exact })
}

/// Maps ascending offsets in a string's text to offsets in its JSON.
pub(crate) fn locate(raw: &str, offsets: &[usize]) -> Vec<usize> {
    let inner = inner(raw).unwrap_or_default();
    let base = 1;
    let mut found = Vec::with_capacity(offsets.len());
    let mut remaining = offsets.iter().copied().peekable();
    let mut read = 0;
    for (at, unit) in Units::new(inner) {
        let width = match unit {
            Unit::Run(run) => run.len(),
            Unit::Char(c) => c.len_utf8(),
            Unit::Broken => char::REPLACEMENT_CHARACTER.len_utf8(),
        };
        while let Some(offset) = remaining.next_if(|offset| *offset < read + width) {
            let is_inside_run = matches!(unit, Unit::Run(_));
            found.push(base + at + if is_inside_run { offset - read } else { 0 });
        }
        read += width;
    }
    found.extend(remaining.map(|_| base + inner.len()));
    found
}

/// Encodes a text as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always JSON")
}

/// Returns whether a text is a valid JSON value.
pub(crate) fn is_valid(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// Returns whether a text is a valid JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && is_valid(text)
}

/// The range of a slice in the text that it was taken from.
pub(crate) fn span(outer: &str, inner: &str) -> Range<usize> {
    let start = (inner.as_ptr() as usize).saturating_sub(outer.as_ptr() as usize).min(outer.len());
    start..(start + inner.len()).min(outer.len())
}

fn inner(raw: &str) -> Option<&str> {
    raw.strip_prefix('"')?.strip_suffix('"')
}

/// A piece of a string's JSON.
enum Unit<'a> {
    /// Unescaped characters.
    Run(&'a str),
    /// An escaped character.
    Char(char),
    /// Half a surrogate pair, or an invalid escape.
    Broken,
}

struct Units<'a> {
    inner: &'a str,
    at: usize,
}

impl<'a> Units<'a> {
    fn new(inner: &'a str) -> Units<'a> {
        Units { inner, at: 0 }
    }

    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.inner.get(at..at + 4)?;
        u32::from_str_radix(digits, 16).ok()
    }

    fn unicode(&mut self) -> Unit<'a> {
        let Some(first) = self.hex(self.at) else { return Unit::Broken };
        self.at += 4;
        let is_high_half = (0xD800..0xDC00).contains(&first);
        if !is_high_half {
            return char::from_u32(first).map_or(Unit::Broken, Unit::Char);
        }
        let follows = self.inner.as_bytes().get(self.at..self.at + 2) == Some(b"\\u");
        let second = if follows { self.hex(self.at + 2) } else { None };
        match second.filter(|second| (0xDC00..0xE000).contains(second)) {
            Some(second) => {
                self.at += 6;
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                char::from_u32(code).map_or(Unit::Broken, Unit::Char)
            }
            None => Unit::Broken,
        }
    }
}

impl<'a> Iterator for Units<'a> {
    type Item = (usize, Unit<'a>);

    fn next(&mut self) -> Option<(usize, Unit<'a>)> {
        let start = self.at;
        let rest = self.inner.get(start..).filter(|rest| !rest.is_empty())?;
        let run = find_either(rest.as_bytes(), 0, [b'\\', b'\\']);
        if run > 0 {
            self.at += run;
            return Some((start, Unit::Run(&rest[..run])));
        }
        let escape = rest.as_bytes().get(1).copied();
        self.at += 2;
        let unit = match escape {
            Some(b'u') => self.unicode(),
            Some(b'n') => Unit::Char('\n'),
            Some(b't') => Unit::Char('\t'),
            Some(b'r') => Unit::Char('\r'),
            Some(b'b') => Unit::Char('\u{8}'),
            Some(b'f') => Unit::Char('\u{c}'),
            Some(b @ (b'"' | b'\\' | b'/')) => Unit::Char(char::from(b)),
            _ => Unit::Broken,
        };
        Some((start, unit))
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\n' | b'\t' | b'\r')) {
        at += 1;
    }
    at
}

fn skip_string(bytes: &[u8], open: usize) -> usize {
    let mut at = find_either(bytes, open + 1, [b'"', b'\\']);
    while bytes.get(at) == Some(&b'\\') {
        at = find_either(bytes, at + 2, [b'"', b'\\']);
    }
    (at + 1).min(bytes.len())
}

/// The next position of either byte from `start`, or the end.
fn find_either(bytes: &[u8], start: usize, either: [u8; 2]) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    memchr::memchr2(either[0], either[1], rest).map_or(bytes.len(), |at| start + at)
}

fn skip_value(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    let mut depth = 0usize;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = skip_string(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                if depth == 0 {
                    return at;
                }
                depth -= 1;
                at += 1;
            }
            b',' | b' ' | b'\n' | b'\t' | b'\r' | b':' if depth == 0 => return at,
            _ => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_duplicate_keys_counts() {
        let object =
            Object::parse(r#" { "a" : 1e5 ,"b":[{"c":"]"}], "a": "\"" , "d":null} "#).expect("an object");
        let shown: Vec<_> = object.fields.iter().map(|f| format!("{}={}", f.key, f.value)).collect();
        assert_eq!(shown, ["a=1e5", r#"b=[{"c":"]"}]"#, r#"a="\"""#, "d=null"]);
        assert_eq!(object.text("a").as_deref(), Some("\""));
        assert_eq!(object.some("d"), None);
        assert_eq!(&object.raw[object.fields[1].span.clone()], r#""b":[{"c":"]"}]"#);
    }

    #[test]
    fn the_list_is_parsed_with_its_object() {
        let raw = r#"{"b":[0],"a":"no list","list" : [ {"x":"]"} , 2,"\"]"] , "list":[9],"c":{}}"#;
        let (object, list) = Object::parse_and_list(raw, &["a", "list"]).expect("an object");
        let whole = Object::parse(raw).expect("an object");
        let values =
            |object: &Object<'_>| object.fields.iter().map(|f| f.value.to_owned()).collect::<Vec<_>>();
        assert_eq!(values(&object), values(&whole));
        let list = list.expect("a list");
        assert_eq!(list.raw, whole.fields[2].value);
        assert_eq!(list.items, array(list.raw).expect("an array"));
        assert_eq!(list.items, [r#"{"x":"]"}"#, "2", r#""\"]""#]);
    }

    #[test]
    fn strings_decode_like_serde() {
        for raw in [r#""""#, r#""plain""#, r#""a\n\t\"\\\/\b\f\r""#, r#""\u00e9\ud83d\ude00x""#, "\"é😀\""]
        {
            let ours = string(raw).expect("a string");
            assert_eq!(ours.text, serde_json::from_str::<String>(raw).expect("valid"), "{raw}");
            assert!(ours.is_exact);
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced_and_reported() {
        for raw in [r#""a\ud83db""#, r#""\ude00""#, r#""\ud83d\u0041""#] {
            let text = string(raw).expect("a string");
            assert!(text.text.contains('\u{fffd}') && !text.is_exact, "{raw}");
        }
    }

    #[test]
    fn bytes_are_found_at_every_offset() {
        let mut bytes = vec![b'x'; 40];
        for at in 0..40 {
            bytes[at] = if at % 2 == 0 { b'"' } else { b'\\' };
            for start in 0..=at {
                assert_eq!(find_either(&bytes, start, [b'"', b'\\']), at);
            }
            bytes[at] = b'x';
        }
        assert_eq!(find_either(&bytes, 3, [b'"', b'#']), 40);
        assert_eq!(find_either("#é\u{80}!\"".as_bytes(), 0, [b'"', b'\\']), 6);
    }

    #[test]
    fn offsets_account_for_escapes() {
        let raw = r#""a\nb\u00e9c""#;
        let text = string(raw).expect("a string").text;
        let offset = text.find('c').expect("there");
        assert_eq!(&raw[locate(raw, &[offset])[0]..], "c\"");
        assert_eq!(locate(raw, &[0, 1, 2, text.len()]), [1, 2, 4, raw.len() - 1]);
    }

    #[test]
    fn deep_nesting_does_not_recurse() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(Object::parse(&deep).expect("an object").fields.len(), 1);
    }

    #[test]
    fn invalid_json_does_not_panic() {
        for raw in [
            "", "{", "{\"", "{\"a", "{\"a\"", "{\"a\":", "[", "[,", "[1", "\"", "{\"a\\", "]", "{a:1}", "é",
            "[:]",
        ] {
            let _ = (Object::parse(raw), array(raw), string(raw), locate(raw, &[0, 5]));
            let listed = Object::parse_and_list(raw, &["a"]).map(|(object, _)| object.fields.len());
            assert_eq!(listed, Object::parse(raw).map(|object| object.fields.len()), "{raw}");
        }
    }
}
