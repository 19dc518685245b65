//! The arguments of a call in one spacing, whatever blanks its client puts between the parts of JSON.
//!
//! What is told of a call should not depend on how its arguments were printed. The original keeps its bytes; the lines
//! and atoms of a call are those of this form.
//!
//! ```text
//! {                             {"path":"a.rs","lines":[1,9]}
//!   "path": "a.rs",         ->
//!   "lines": [1, 9]
//! }
//! ```

use memchr::memchr2;
use serde_json::value::RawValue;

/// Arguments in one spacing, behind their label, and where each part of them stood.
#[derive(Debug, Default)]
pub(crate) struct Respaced {
    text: String,
    /// Where each run of bytes begins: here, and in the label and the arguments as they came.
    runs: Vec<(usize, usize)>,
}

impl Respaced {
    /// Reads arguments. Says whether they are JSON in another spacing; where they are not, they are taken as they came.
    pub(crate) fn read(&mut self, label: &str, arguments: &str) -> bool {
        if !arguments.trim_ascii_start().starts_with(['{', '[']) {
            return false;
        }
        self.text.clear();
        self.runs.clear();
        self.runs.push((0, 0));
        self.text.push_str(label);
        self.respace(label.len(), arguments);
        self.text[label.len()..] != *arguments && serde_json::from_str::<&RawValue>(arguments).is_ok()
    }

    /// The label and the arguments in one spacing.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where something in this text stood in the label and the arguments as they came.
    pub(crate) fn original(&self, at: usize) -> usize {
        let run = self.runs.partition_point(|(here, _)| *here <= at);
        let (here, there) = self.runs[run.saturating_sub(1)];
        there + (at - here)
    }

    /// No blank anywhere but in strings.
    fn respace(&mut self, n_label: usize, arguments: &str) {
        let bytes = arguments.as_bytes();
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => at = end_of_string(bytes, at),
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.take(n_label + from, &arguments[from..at]);
                    at = end_of_blanks(bytes, at);
                    from = at;
                }
                _ => at += 1,
            }
        }
        self.take(n_label + from, &arguments[from..]);
    }

    fn take(&mut self, from: usize, run: &str) {
        if !run.is_empty() {
            self.runs.push((self.text.len(), from));
            self.text.push_str(run);
        }
    }
}

/// Where the string ends that begins here.
fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(n) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        if bytes[at + n] == b'"' {
            return at + n + 1;
        }
        at += n + 2;
    }
    bytes.len()
}

fn end_of_blanks(bytes: &[u8], start: usize) -> usize {
    start + bytes[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn respaced(arguments: &str) -> Option<String> {
        let mut respaced = Respaced::default();
        respaced.read("call x: ", arguments).then(|| respaced.text().to_owned())
    }

    #[test]
    fn json_takes_one_spacing_and_nothing_else_is_touched() {
        let one = r#"call x: {"a":"b , c:d\" ","e":[1,{}],"f":[]}"#;
        for arguments in [
            r#"{"a": "b , c:d\" ", "e": [1, {}], "f": []}"#,
            "{\n  \"a\": \"b , c:d\\\" \",\n  \"e\": [\n    1,\n    { }\n  ],\n\t\"f\" : [ ]\r\n}\n",
        ] {
            assert_eq!(respaced(arguments).as_deref(), Some(one), "{arguments}");
        }
        for arguments in [r#"{"a":"b"}"#, "", "ls  -la", "{ no json : at all }", "{\"a\":  \"b\\", "\"a\" "] {
            assert_eq!(respaced(arguments), None, "{arguments}");
        }
    }

    /// Any JSON that arguments could be.
    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            "[a-z\\\\\" :,{}\\[\\]\n\u{e4}]{0,12}".prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
        ];
        let inner = leaf.prop_recursive(3, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-z_]{1,6}", inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        });
        inner.prop_map(|inner| json!({ "path": inner, "last": 1 }))
    }

    proptest! {
        #[test]
        fn every_spacing_becomes_the_same(value in value()) {
            let (tight, wide) = (value.to_string(), serde_json::to_string_pretty(&value).expect("JSON"));
            prop_assert_eq!(respaced(&wide), Some(format!("call x: {tight}")));
            prop_assert_eq!(respaced(&format!(" {tight}\n")), Some(format!("call x: {tight}")));
            prop_assert_eq!(respaced(&tight), None);
        }

        #[test]
        fn each_part_knows_where_it_stood(value in value()) {
            let wide = format!("call x: {}", serde_json::to_string_pretty(&value).expect("JSON"));
            let mut respaced = Respaced::default();
            prop_assert!(respaced.read("call x: ", &wide["call x: ".len()..]));
            let blanks = |c: char| c.is_ascii_whitespace();
            for (at, c) in respaced.text().char_indices().filter(|(_, c)| !blanks(*c)) {
                prop_assert!(wide[respaced.original(at)..].starts_with(c), "{at} of {}", respaced.text());
            }
        }

        #[test]
        fn anything_is_read(text in "[{\\[]?(\\PC|[\n\"\\\\{}:, ]){0,60}") {
            let mut respaced = Respaced::default();
            respaced.read("", &text);
        }
    }
}
