//! Values looked at, and what is wrong with them.

use std::fmt::Display;

use serde_json::Value;

use super::Broken;

/// What was found so far.
#[derive(Default)]
pub(super) struct Look {
    pub(super) broken: Vec<Broken>,
}

impl Look {
    /// Notes a rule that is broken at a place.
    pub(super) fn breaks(&mut self, rule: &'static str, place: impl Display) {
        self.broken.push(Broken { rule, place: place.to_string() });
    }

    /// Notes a rule that is broken unless something holds.
    pub(super) fn holds(&mut self, is_so: bool, rule: &'static str, place: impl Display) {
        if !is_so {
            self.breaks(rule, place);
        }
    }

    /// Notes every field that is not among those known.
    pub(super) fn fields(&mut self, value: &Value, known: &[&str], rule: &'static str, place: &str) {
        for key in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
            self.holds(known.contains(&key.as_str()), rule, format!("{place}.{key}"));
        }
    }
}

/// A field that is a text; empty if it is not there or is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A field that is a list; empty if it is not there or is none.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether a field is there and not null.
pub(super) fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|value| !value.is_null())
}

/// Whether a name is of letters, digits, `_` and `-`, and not longer than it may be.
pub(super) fn is_name(name: &str, longest: usize) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= longest && name.chars().all(is_plain)
}

/// Whether a schema is one of an object.
pub(super) fn is_object_schema(schema: &Value) -> bool {
    text(schema, "type") == "object"
}
