//! Compact form of JSON arguments, independent of how a client prints them.
//!
//! Derived text such as lines and atoms must not depend on the spacing of JSON. The original keeps its bytes.
//!
//! ```text
//! {                             {"path":"a.rs","lines":[1,9]}
//!   "path": "a.rs",         ->
//!   "lines": [1, 9]
//! }
//! ```

use memchr::memchr2;
use serde_json::value::RawValue;

/// JSON arguments without whitespace after their label, with offsets into the original.
#[derive(Debug, Default)]
pub(crate) struct CompactJson {
    text: String,
    /// The beginning of each run of copied bytes: in `text`, and in the label followed by the original arguments.
    runs: Vec<(usize, usize)>,
}

impl CompactJson {
    /// Removes the whitespace of arguments. Returns false if they are not JSON or are compact already.
    pub(crate) fn read(&mut self, label: &str, arguments: &str) -> bool {
        if !arguments.trim_ascii_start().starts_with(['{', '[']) {
            return false;
        }
        self.text.clear();
        self.runs.clear();
        self.runs.push((0, 0));
        self.text.push_str(label);
        self.copy_compact(label.len(), arguments);
        self.text[label.len()..] != *arguments && serde_json::from_str::<&RawValue>(arguments).is_ok()
    }

    /// The label and the compact arguments.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Converts an offset in the text into one in the label followed by the original arguments.
    pub(crate) fn original(&self, at: usize) -> usize {
        let run = self.runs.partition_point(|(here, _)| *here <= at);
        let (here, there) = self.runs[run.saturating_sub(1)];
        there + (at - here)
    }

    /// Copies everything but whitespace outside of strings.
    fn copy_compact(&mut self, n_label: usize, arguments: &str) {
        let bytes = arguments.as_bytes();
        let (mut from, mut at) = (0, 0);
        while at < bytes.len() {
            match bytes[at] {
                b'"' => at = end_of_string(bytes, at),
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.copy_run(n_label + from, &arguments[from..at]);
                    at = end_of_blanks(bytes, at);
                    from = at;
                }
                _ => at += 1,
            }
        }
        self.copy_run(n_label + from, &arguments[from..]);
    }

    fn copy_run(&mut self, from: usize, run: &str) {
        if !run.is_empty() {
            self.runs.push((self.text.len(), from));
            self.text.push_str(run);
        }
    }
}

/// The end of the string that begins here.
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

    fn compacted(arguments: &str) -> Option<String> {
        let mut compact = CompactJson::default();
        compact.read("call x: ", arguments).then(|| compact.text().to_owned())
    }

    #[test]
    fn compacts_json_and_nothing_else() {
        let one = r#"call x: {"a":"b , c:d\" ","e":[1,{}],"f":[]}"#;
        for arguments in [
            r#"{"a": "b , c:d\" ", "e": [1, {}], "f": []}"#,
            "{\n  \"a\": \"b , c:d\\\" \",\n  \"e\": [\n    1,\n    { }\n  ],\n\t\"f\" : [ ]\r\n}\n",
        ] {
            assert_eq!(compacted(arguments).as_deref(), Some(one), "{arguments}");
        }
        for arguments in [r#"{"a":"b"}"#, "", "ls  -la", "{ no json : at all }", "{\"a\":  \"b\\", "\"a\" "] {
            assert_eq!(compacted(arguments), None, "{arguments}");
        }
    }

    /// Any JSON that arguments may be.
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
        fn compact_form_does_not_depend_on_spacing(value in value()) {
            let (tight, wide) = (value.to_string(), serde_json::to_string_pretty(&value).expect("JSON"));
            prop_assert_eq!(compacted(&wide), Some(format!("call x: {tight}")));
            prop_assert_eq!(compacted(&format!(" {tight}\n")), Some(format!("call x: {tight}")));
            prop_assert_eq!(compacted(&tight), None);
        }

        #[test]
        fn offsets_point_to_the_original(value in value()) {
            let wide = format!("call x: {}", serde_json::to_string_pretty(&value).expect("JSON"));
            let mut compact = CompactJson::default();
            prop_assert!(compact.read("call x: ", &wide["call x: ".len()..]));
            let blanks = |c: char| c.is_ascii_whitespace();
            for (at, c) in compact.text().char_indices().filter(|(_, c)| !blanks(*c)) {
                prop_assert!(wide[compact.original(at)..].starts_with(c), "{at} of {}", compact.text());
            }
        }

        #[test]
        fn accepts_any_input(text in "[{\\[]?(\\PC|[\n\"\\\\{}:, ]){0,60}") {
            let mut compact = CompactJson::default();
            compact.read("", &text);
        }
    }
}
