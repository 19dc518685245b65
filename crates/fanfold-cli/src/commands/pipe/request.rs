//! Parses a request line.

use std::borrow::Cow;

use fanfold_core::Handle;
use fanfold_engine::find_handle;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::failure::{Failure, Result};
use crate::settings::{nearest, unknown_key};

/// One line. `op` decides which fields are used. An unknown field is an error, because it may be misspelt.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request<'a> {
    #[serde(borrow, default)]
    session: Option<&'a RawValue>,
    pub(super) op: Option<String>,
    /// The number of the call in its session, from 1.
    pub(super) call: Option<u64>,
    pub(super) window: Option<u64>,
    pub(super) reserve: Option<u64>,
    /// Seconds since the last request to the provider.
    pub(super) idle: Option<f64>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    pub(super) incremental: Option<bool>,
    pub(super) format: Option<String>,
    pub(super) model: Option<String>,
    pub(super) handle: Option<String>,
    pub(super) lines: Option<(usize, usize)>,
    pub(super) search: Option<String>,
    pub(super) around: Option<usize>,
    pub(super) entry: Option<u32>,
    pub(super) topic: Option<String>,
    pub(super) from: Option<u32>,
    pub(super) to: Option<u32>,
}

const SHAPE: &str =
    r#"send {"session": "a", "window": 32000, "messages": [...]}; `fanfold help pipe` describes the format"#;

impl<'a> Request<'a> {
    pub(super) fn parse(line: &'a str) -> Result<Request<'a>> {
        // Ignore a byte order mark.
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let is_object = line.trim_start().starts_with('{');
        if is_object {
            return serde_json::from_str(line).map_err(|error| syntax_failure(line, &error));
        }
        // serde would accept a list as the fields in their order.
        Err(match serde_json::from_str::<IgnoredAny>(line) {
            Ok(_) => Failure::new("this is JSON, but not an object", SHAPE),
            Err(_) => Failure::new("this is not JSON", SHAPE),
        })
    }

    /// The name of the session, which may be a number. Lines without one belong to a single session.
    pub(super) fn session(&self) -> Cow<'a, str> {
        match self.session {
            None => Cow::Borrowed(""),
            Some(raw) => {
                serde_json::from_str::<String>(raw.get()).map_or(Cow::Borrowed(raw.get()), Cow::Owned)
            }
        }
    }

    /// The list of messages, verbatim.
    pub(super) fn message_list(&self) -> Result<&'a str> {
        self.messages.map(RawValue::get).ok_or_else(|| Failure::new("there are no `messages`", SHAPE))
    }

    /// The messages.
    pub(super) fn messages(&self) -> Result<Vec<&'a RawValue>> {
        serde_json::from_str(self.message_list()?)
            .map_err(|_| Failure::new("`messages` is not a list", SHAPE))
    }

    /// The schemas of the tools, verbatim.
    pub(super) fn tools(&self) -> Option<&'a str> {
        self.tools.map(RawValue::get)
    }

    pub(super) fn handle(&self) -> Result<Handle> {
        let hint = "give the handle as it appears in the folded messages";
        let Some(handle) = &self.handle else { return Err(Failure::new("there is no `handle`", hint)) };
        find_handle(handle).map_err(|error| Failure::new(error.to_string(), hint))
    }
}

fn syntax_failure(line: &str, error: &serde_json::Error) -> Failure {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    let column = error.column();
    if let Some((key, known)) = unknown_key(reason) {
        let hint = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the fields are {}", known.join(", ")),
        };
        return Failure::new(format!("column {column}: there is no field `{key}`"), hint);
    }
    let what = match error.classify() {
        Category::Eof => "the JSON ends before it is complete".to_owned(),
        Category::Syntax => format!("not JSON: {reason}"),
        Category::Data | Category::Io => match field_before(line, column) {
            Some(field) => format!("`{field}`: {}", without_rust_types(reason)),
            None => without_rust_types(reason),
        },
    };
    Failure::new(format!("column {column}: {what}"), SHAPE)
}

/// The name of the field whose value ends at a column.
fn field_before(line: &str, column: usize) -> Option<&str> {
    let (before, _) = line.get(..column.min(line.len()))?.rsplit_once(':')?;
    before.trim_end().strip_suffix('"')?.rsplit_once('"').map(|(_, name)| name)
}

/// Replaces the names of Rust types in an error message.
fn without_rust_types(reason: &str) -> String {
    let kinds = [
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("expected a tuple of size 2", "expected a list of two whole numbers"),
    ];
    kinds.iter().fold(reason.to_owned(), |text, (kind, plain)| text.replace(kind, plain))
}
