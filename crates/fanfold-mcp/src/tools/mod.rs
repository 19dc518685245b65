//! The three tools. What a model reads of them is paid for with every turn, so it is short.

mod search; // what was said, in four shapes
mod recall; // what was folded, as it stood
mod status; // how sessions stand

use std::sync::Arc;

use fanfold_engine::Engine;
use fanfold_store::SessionRow;
use fanfold_store::search::Profiles;
use rmcp::model::{JsonObject, Tool as Description, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::arguments::Arguments;
use crate::wrong::Wrong;

/// What every client is told once.
pub(crate) const INSTRUCTIONS: &str = "fanfold keeps conversations whole. Where something was folded away, digits like [291227] stand for it: recall opens them.";

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Finds what was said.
    Search,
    /// Opens a fold.
    Recall,
    /// Tells how sessions stand.
    Status,
}

/// Where a tool looks, and who asks.
pub(crate) struct Desk<'a> {
    pub(crate) engine: &'a Engine,
    /// The session that is meant where none is named.
    pub(crate) session: Option<&'a str>,
    pub(crate) profiles: &'a dyn Profiles,
    /// Whether nobody waits for the answer any more.
    pub(crate) is_over: &'a dyn Fn() -> bool,
}

impl Tool {
    pub(crate) const ALL: [Tool; 3] = [Tool::Search, Tool::Recall, Tool::Status];

    pub(crate) fn named(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Search => "search",
            Tool::Recall => "recall",
            Tool::Status => "status",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Tool::Search => {
                "Find what was said, in any session. query: words, \"phrases\", begin*, OR, NOT. session_id alone reads a \
                 session, with around_message_id what is around a message; nothing lists the newest sessions."
            }
            Tool::Recall => {
                "Open a fold: the original behind a handle, as it stood; whole, some lines, or the lines with a text."
            }
            Tool::Status => {
                "How full a session's window is; its folds, pins and goal. Without session_id: the newest sessions."
            }
        }
    }

    /// The arguments that a model is told of.
    fn properties(self) -> Value {
        match self {
            Tool::Search => json!({
                "query": { "type": "string" },
                "session_id": { "type": "string" },
                "around_message_id": { "type": "integer" },
                "window": { "type": "integer" },
                "limit": { "type": "integer" },
                "offset": { "type": "integer" },
                "sort": { "type": "string", "enum": ["newest", "oldest"] },
                "role_filter": { "type": "string", "description": "user,assistant,tool" },
                "since": { "type": "string", "description": "2026-11-15" },
                "before": { "type": "string" },
            }),
            Tool::Recall => json!({
                "handle": { "type": "string", "description": "291227" },
                "lines": { "type": "string", "description": "40, 1-40 or 40-" },
                "search": { "type": "string" },
                "offset": { "type": "integer" },
                "session_id": { "type": "string" },
            }),
            Tool::Status => json!({ "session_id": { "type": "string" } }),
        }
    }

    /// Arguments that are taken, too.
    fn quiet(self) -> &'static [&'static str] {
        match self {
            Tool::Search => &["profile", "source_filter", "max_chars"],
            Tool::Recall | Tool::Status => &[],
        }
    }

    /// What a client is told of it.
    pub(crate) fn description(self) -> Description {
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), self.properties());
        if self == Tool::Recall {
            schema.insert("required".to_owned(), json!(["handle"]));
        }
        Description::new(self.name(), self.words(), Arc::new(schema))
            .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
    }

    /// Does it. The answer is one text or two: what was asked for, and a word on it.
    pub(crate) fn run(self, desk: &Desk<'_>, given: Map<String, Value>) -> Result<Vec<String>, Wrong> {
        let properties = self.properties();
        let names = properties.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let known: Vec<&str> = names.chain(self.quiet().iter().copied()).collect();
        let arguments = Arguments::new(given, &known)?;
        match self {
            Tool::Search => search::run(desk, &arguments),
            Tool::Recall => recall::run(desk, &arguments),
            Tool::Status => status::run(desk, &arguments),
        }
    }
}

impl Desk<'_> {
    /// The session that is meant: the one named, or else the usual one if there is one. A usual one that is not there yet is
    /// none.
    fn session(&self, named: Option<&str>) -> Result<Option<SessionRow>, Wrong> {
        match (named, self.session) {
            (Some(name), _) => Ok(Some(self.engine.find(name)?)),
            (None, Some(name)) => Ok(self.engine.find(name).ok()),
            (None, None) => Ok(None),
        }
    }
}
