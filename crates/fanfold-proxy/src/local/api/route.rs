//! A route: method, path, parameters, response and function.

use std::collections::BTreeMap;

use fanfold_engine::SessionEngine;
use serde_json::Value;

use super::api_error::ApiError;

pub(crate) struct Route {
    pub(crate) method: Method,
    /// The path below that of the API, with parameters in braces.
    pub(crate) path: &'static str,
    /// The operation id.
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) parameters: &'static [Parameter],
    pub(crate) answer: ResponseShape,
    pub(crate) run: fn(&SessionEngine, &QueryArguments) -> Result<Value, ApiError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Get,
    Post,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) location: ParameterLocation,
    pub(crate) kind: ParameterType,
    pub(crate) description: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterLocation {
    /// In the path; always required.
    Path,
    Query,
    /// A field of the JSON body.
    Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParameterType {
    Text,
    Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseShape {
    /// JSON with this schema.
    Shape(&'static str),
    /// JSON with a field that is a list of this schema.
    List(&'static str, &'static str),
    /// Plain text.
    Text,
}

/// The arguments of a request, by name.
#[derive(Debug, Default)]
pub(crate) struct QueryArguments {
    pub(crate) values: BTreeMap<String, Value>,
}

impl QueryArguments {
    /// Checks the arguments of a request. An unknown name is an error.
    pub(crate) fn new(
        route: &Route,
        given: Vec<(ParameterLocation, String, Value)>,
    ) -> Result<QueryArguments, ApiError> {
        let mut values = BTreeMap::new();
        for (location, name, value) in given {
            let is_known =
                route.parameters.iter().any(|known| known.name == name && known.location == location);
            if !is_known {
                let same_location = route.parameters.iter().filter(|known| known.location == location);
                let names: Vec<&str> = same_location.map(|known| known.name).collect();
                let name: String = name.chars().take(60).collect();
                let hint = match names.is_empty() {
                    true => "this route has no parameters".to_owned(),
                    false => format!("its parameters are {}", names.join(", ")),
                };
                return Err(ApiError::bad_request(format!("there is no parameter `{name}`"), hint));
            }
            if !value.is_null() {
                values.insert(name, value);
            }
        }
        Ok(QueryArguments { values })
    }

    /// A text argument.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        let text = match self.values.get(name)? {
            Value::String(text) => text.trim().to_owned(),
            other => other.to_string(),
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// An argument in the path.
    pub(crate) fn path(&self, name: &str) -> String {
        self.text(name).unwrap_or_default()
    }

    /// An integer argument.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let wrong =
            || ApiError::bad_request(format!("`{name}` is not an integer: {text}"), "write digits only");
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// A non-negative integer argument.
    pub(crate) fn count(&self, name: &str) -> Result<Option<u32>, ApiError> {
        let Some(number) = self.number(name)? else { return Ok(None) };
        let wrong = || ApiError::bad_request(format!("`{name}` cannot be {number}"), "give 0 or more");
        u32::try_from(number).map(Some).map_err(|_| wrong())
    }
}
