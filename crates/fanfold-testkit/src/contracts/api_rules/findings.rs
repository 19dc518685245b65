//! Collects violations, and accessors of JSON values.

use std::fmt::Display;

use serde_json::Value;

use super::Violation;

/// The violations of a request.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) violations: Vec<Violation>,
}

impl Findings {
    /// Reports a broken rule.
    pub(super) fn report(&mut self, rule: &'static str, position: impl Display) {
        self.violations.push(Violation { rule, position: position.to_string() });
    }

    /// Reports a broken rule unless a condition holds.
    pub(super) fn require(&mut self, is_kept: bool, rule: &'static str, position: impl Display) {
        if !is_kept {
            self.report(rule, position);
        }
    }

    /// Reports every unknown field of an object.
    pub(super) fn require_known_fields(
        &mut self,
        value: &Value,
        known: &[&str],
        rule: &'static str,
        position: &str,
    ) {
        for key in value.as_object().into_iter().flat_map(|fields| fields.keys()) {
            self.require(known.contains(&key.as_str()), rule, format!("{position}.{key}"));
        }
    }
}

/// The string in a field; empty if there is no such string.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The list in a field; empty if there is no such list.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// True if a field exists and is not null.
pub(super) fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|value| !value.is_null())
}

/// True if a name has 1 to `max_len` letters, digits, `_` and `-`.
pub(super) fn is_name(name: &str, max_len: usize) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= max_len && name.chars().all(is_plain)
}

/// True if a schema has the type object.
pub(super) fn is_object_schema(schema: &Value) -> bool {
    text(schema, "type") == "object"
}
