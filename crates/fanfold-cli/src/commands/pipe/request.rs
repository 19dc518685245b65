//! What a line asks for.

use std::borrow::Cow;

use fanfold_core::Handle;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::failure::Failure;
use crate::settings::{nearest, unknown_key};

/// One line. Which fields count depends on `op`; a field that is not known is an error, for it may be a misspelt one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request<'a> {
    #[serde(borrow, default)]
    session: Option<&'a RawValue>,
    pub(crate) op: Option<String>,
    /// The number of the call in its session, from 1.
    pub(crate) call: Option<u64>,
    pub(crate) window: Option<u64>,
    pub(crate) reserve: Option<u64>,
    /// For how many seconds nothing was sent.
    pub(crate) idle: Option<f64>,
    #[serde(borrow)]
    messages: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    pub(crate) incremental: Option<bool>,
    pub(crate) format: Option<String>,
    pub(crate) model: Option<String>,
    handle: Option<String>,
    pub(crate) lines: Option<(usize, usize)>,
    pub(crate) search: Option<String>,
    pub(crate) around: Option<usize>,
    pub(crate) entry: Option<u32>,
    pub(crate) topic: Option<String>,
    pub(crate) from: Option<u32>,
    pub(crate) to: Option<u32>,
}

const SHAPE: &str =
    r#"send {"session": "a", "window": 32000, "messages": [...]}; `fanfold help pipe` tells all"#;

impl<'a> Request<'a> {
    pub(crate) fn parse(line: &'a str) -> Result<Request<'a>, Failure> {
        // A mark at the beginning of a file is no part of a line.
        let line = line.strip_prefix('\u{feff}').unwrap_or(line);
        let is_object = line.trim_start().starts_with('{');
        if is_object {
            return serde_json::from_str(line).map_err(|error| wrong(line, &error));
        }
        // A list would be taken for the fields in their order.
        Err(match serde_json::from_str::<IgnoredAny>(line) {
            Ok(_) => Failure::new("this is JSON, but no object", SHAPE),
            Err(_) => Failure::new("this is not JSON", SHAPE),
        })
    }

    /// The session's name. A number is as good as a text; without one, all lines are of one session.
    pub(crate) fn session(&self) -> Cow<'a, str> {
        match self.session {
            None => Cow::Borrowed(""),
            Some(raw) => {
                serde_json::from_str::<String>(raw.get()).map_or(Cow::Borrowed(raw.get()), Cow::Owned)
            }
        }
    }

    /// The list of messages as it came.
    pub(crate) fn message_list(&self) -> Result<&'a str, Failure> {
        self.messages.map(RawValue::get).ok_or_else(|| Failure::new("there are no `messages`", SHAPE))
    }

    /// The messages one by one.
    pub(crate) fn messages(&self) -> Result<Vec<&'a RawValue>, Failure> {
        serde_json::from_str(self.message_list()?)
            .map_err(|_| Failure::new("`messages` is not a list", SHAPE))
    }

    /// The tool schemas as they came.
    pub(crate) fn tools(&self) -> Option<&'a str> {
        self.tools.map(RawValue::get)
    }

    pub(crate) fn handle(&self) -> Result<Handle, Failure> {
        let hint = "give the handle as it stands in the folded messages";
        let Some(handle) = &self.handle else { return Err(Failure::new("there is no `handle`", hint)) };
        handle.parse().map_err(|error| Failure::new(format!("{error}"), hint))
    }
}

fn wrong(line: &str, error: &serde_json::Error) -> Failure {
    let words = error.to_string();
    let reason = words.split(" at line ").next().unwrap_or_default();
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
            Some(field) => format!("`{field}`: {}", in_words(reason)),
            None => in_words(reason),
        },
    };
    Failure::new(format!("column {column}: {what}"), SHAPE)
}

/// The name of the field whose value ends at a column.
fn field_before(line: &str, column: usize) -> Option<&str> {
    let (before, _) = line.get(..column.min(line.len()))?.rsplit_once(':')?;
    before.trim_end().strip_suffix('"')?.rsplit_once('"').map(|(_, name)| name)
}

/// What was expected, for who knows no Rust.
fn in_words(reason: &str) -> String {
    let kinds = [
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected f64", "expected a number"),
        ("expected a tuple of size 2", "expected a list of two whole numbers"),
    ];
    kinds.iter().fold(reason.to_owned(), |words, (kind, told)| words.replace(kind, told))
}
