//! What a route is: how it is asked, what it does, what it answers.

use std::collections::BTreeMap;

use fanfold_engine::Engine;
use serde_json::Value;

use super::refused::Refused;

/// One thing that can be asked.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Below the API's own path, with names in braces.
    pub(crate) path: &'static str,
    /// What programs call it.
    pub(crate) name: &'static str,
    /// What it is for.
    pub(crate) words: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) answer: Answer,
    pub(crate) run: fn(&Engine, &Asked) -> Result<Value, Refused>,
}

/// How it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// It changes nothing.
    Get,
    /// It makes something.
    Post,
}

/// Something that is said with a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    pub(crate) words: &'static str,
}

/// Where it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the path, always.
    Path,
    /// Behind a question mark.
    Query,
    /// In the JSON of the body.
    Body,
}

/// What it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Number,
}

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// JSON of this shape.
    Shape(&'static str),
    /// JSON with a list of these under a name.
    List(&'static str, &'static str),
    /// A text as it stood.
    Text,
}

/// A request, its parts by their names.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) values: BTreeMap<String, Value>,
}

impl Asked {
    /// Takes what was said, all of which must be known.
    pub(crate) fn new(route: &Route, said: Vec<(Place, String, Value)>) -> Result<Asked, Refused> {
        let mut values = BTreeMap::new();
        for (place, name, value) in said {
            let is_known = route.parameters.iter().any(|known| known.name == name && known.place == place);
            if !is_known {
                let of_place = route.parameters.iter().filter(|known| known.place == place);
                let names: Vec<&str> = of_place.map(|known| known.name).collect();
                let name: String = name.chars().take(60).collect();
                let hint = match names.is_empty() {
                    true => "there is none".to_owned(),
                    false => format!("there are {}", names.join(", ")),
                };
                return Err(Refused::wrong(format!("there is no parameter `{name}`"), hint));
            }
            if !value.is_null() {
                values.insert(name, value);
            }
        }
        Ok(Asked { values })
    }

    /// A text, if it was said.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = match self.values.get(name)? {
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// What a path always says.
    pub(crate) fn path(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// A whole number, if one was said.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Refused> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong = || Refused::wrong(format!("`{name}` is no whole number: {text}"), "write digits alone");
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// A number of things, if one was said.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u32>, Refused> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let wrong = || Refused::wrong(format!("`{name}` can't be {number}"), "it counts from 0");
        u32::try_from(number).map(Some).map_err(|_| wrong())
    }
}
