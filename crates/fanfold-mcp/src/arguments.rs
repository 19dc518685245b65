//! What a model wrote, read kindly: numbers in quotes, texts without them, names that are nearly right.

use serde_json::{Map, Value};

use crate::wrong::Wrong;

/// Names that models write for others.
const ALIASES: [(&str, &str); 6] = [
    ("session", "session_id"),
    ("around", "around_message_id"),
    ("message_id", "around_message_id"),
    ("role", "role_filter"),
    ("source", "source_filter"),
    ("text", "search"),
];

/// The arguments of a call.
pub(crate) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Takes arguments, all of which must be known: one that is passed over would look like one that was heeded.
    pub(crate) fn new(given: Map<String, Value>, known: &[&str]) -> Result<Arguments, Wrong> {
        let mut arguments = Map::new();
        for (name, value) in given {
            let is_known = known.contains(&name.as_str());
            let meant = ALIASES.iter().find(|(alias, meant)| *alias == name && known.contains(meant));
            let name = match meant {
                Some((_, meant)) if !is_known => (*meant).to_owned(),
                _ if is_known => name,
                _ => {
                    let name: String = name.chars().take(60).collect();
                    return Err(Wrong::new(
                        format!("there is no argument `{name}`"),
                        format!("there are {}", known.join(", ")),
                    ));
                }
            };
            if !value.is_null() {
                arguments.insert(name, value);
            }
        }
        Ok(Arguments(arguments))
    }

    /// Whatever was given.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text; none if it is empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, Wrong> {
        let text = match self.0.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(other) => return Err(not(name, "text", other)),
        };
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Wrong> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let number = match value {
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().parse().ok(),
            other => {
                other.as_i64().or(other.as_f64().filter(|number| number.fract() == 0.0).map(|n| n as i64))
            }
        };
        number.map(Some).ok_or_else(|| not(name, "whole number", value))
    }
}

fn not(name: &str, kind: &str, value: &Value) -> Wrong {
    let written: String = value.to_string().chars().take(60).collect();
    Wrong::new(format!("`{name}` is no {kind}: {written}"), format!("give `{name}` as a {kind}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Result<Arguments, Wrong> {
        let Value::Object(map) = value else { panic!("no object") };
        Arguments::new(map, &["session_id", "limit", "search"])
    }

    #[test]
    fn what_models_write_is_read() {
        let read = arguments(json!({ "session": 12, "limit": " 3 ", "search": null })).unwrap();
        assert_eq!(read.text("session_id").unwrap().as_deref(), Some("12"));
        assert_eq!(read.number("limit").unwrap(), Some(3));
        assert_eq!(read.text("search").unwrap(), None);
        assert_eq!(arguments(json!({ "limit": 3.0 })).unwrap().number("limit").unwrap(), Some(3));
        assert_eq!(arguments(json!({ "limit": "" })).unwrap().number("limit").unwrap(), None);
    }

    #[test]
    fn what_is_not_understood_is_told() {
        let Err(wrong) = arguments(json!({ "sesion": "x" })) else { panic!("not known") };
        assert_eq!(wrong.hint, "there are session_id, limit, search");
        let many = arguments(json!({ "limit": "many", "search": {} })).unwrap();
        assert_eq!(many.number("limit").unwrap_err().what, "`limit` is no whole number: \"many\"");
        assert_eq!(many.text("search").unwrap_err().what, "`search` is no text: {}");
    }
}
