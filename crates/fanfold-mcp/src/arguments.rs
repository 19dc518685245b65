//! Lenient parsing of arguments: quoted numbers, unquoted texts and common wrong names are accepted.

use serde_json::{Map, Value};

use crate::tool_error::ToolError;

/// Wrong argument names that models often write, and the right ones.
const ALIASES: [(&str, &str); 6] = [
    ("session", "session_id"),
    ("around", "around_message_id"),
    ("message_id", "around_message_id"),
    ("role", "role_filter"),
    ("source", "source_filter"),
    ("text", "search"),
];

/// The arguments of a call.
pub(crate) struct JsonArguments(Map<String, Value>);

impl JsonArguments {
    /// Checks the names of the arguments. An unknown name is an error, because the model would believe it had an effect.
    pub(crate) fn new(given: Map<String, Value>, known: &[&str]) -> Result<JsonArguments, ToolError> {
        let mut arguments = Map::new();
        for (name, value) in given {
            let is_known = known.contains(&name.as_str());
            let alias = ALIASES.iter().find(|(alias, meant)| *alias == name && known.contains(meant));
            let name = match alias {
                Some((_, meant)) if !is_known => (*meant).to_owned(),
                _ if is_known => name,
                _ => {
                    let name: String = name.chars().take(60).collect();
                    return Err(ToolError::new(
                        format!("there is no argument `{name}`"),
                        format!("the arguments are {}", known.join(", ")),
                    ));
                }
            };
            if !value.is_null() {
                arguments.insert(name, value);
            }
        }
        Ok(JsonArguments(arguments))
    }

    /// The value of an argument, of any type.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// A text; `None` if it is absent or empty.
    pub(crate) fn text(&self, name: &str) -> Result<Option<String>, ToolError> {
        let text = match self.0.get(name) {
            None => return Ok(None),
            Some(Value::String(text)) => text.trim().to_owned(),
            Some(Value::Number(number)) => number.to_string(),
            Some(other) => return Err(wrong_type(name, "text", other)),
        };
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// A whole number; `None` if it is absent or empty.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ToolError> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        let number = match value {
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().parse().ok(),
            other => {
                other.as_i64().or(other.as_f64().filter(|number| number.fract() == 0.0).map(|n| n as i64))
            }
        };
        number.map(Some).ok_or_else(|| wrong_type(name, "whole number", value))
    }
}

fn wrong_type(name: &str, expected: &str, value: &Value) -> ToolError {
    let written: String = value.to_string().chars().take(60).collect();
    ToolError::new(
        format!("`{name}` is not a {expected}: {written}"),
        format!("give `{name}` as a {expected}"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn arguments(value: Value) -> Result<JsonArguments, ToolError> {
        let Value::Object(map) = value else { panic!("not an object") };
        JsonArguments::new(map, &["session_id", "limit", "search"])
    }

    #[test]
    fn quoted_numbers_and_aliases_are_accepted() {
        let read = arguments(json!({ "session": 12, "limit": " 3 ", "search": null })).unwrap();
        assert_eq!(read.text("session_id").unwrap().as_deref(), Some("12"));
        assert_eq!(read.number("limit").unwrap(), Some(3));
        assert_eq!(read.text("search").unwrap(), None);
        assert_eq!(arguments(json!({ "limit": 3.0 })).unwrap().number("limit").unwrap(), Some(3));
        assert_eq!(arguments(json!({ "limit": "" })).unwrap().number("limit").unwrap(), None);
    }

    #[test]
    fn unknown_names_and_wrong_types_are_errors() {
        let Err(error) = arguments(json!({ "sesion": "x" })) else { panic!("`sesion` is unknown") };
        assert_eq!(error.hint, "the arguments are session_id, limit, search");
        let many = arguments(json!({ "limit": "many", "search": {} })).unwrap();
        assert_eq!(many.number("limit").unwrap_err().message, "`limit` is not a whole number: \"many\"");
        assert_eq!(many.text("search").unwrap_err().message, "`search` is not a text: {}");
    }
}
