//! The three tools. Their descriptions are short, because every request to a model contains them.

mod search; // finds messages
mod recall; // opens folds
mod status; // sizes of sessions

use std::sync::Arc;

use fanfold_engine::SessionEngine;
use fanfold_store::SessionRow;
use fanfold_store::search::Profiles;
use rmcp::model::{JsonObject, Tool as Description, ToolAnnotations};
use serde_json::{Map, Value, json};

use crate::arguments::JsonArguments;
use crate::tool_error::ToolError;

/// The instructions that every client receives once.
pub(crate) const INSTRUCTIONS: &str = "fanfold keeps conversations whole. Where something was folded away, a handle like #12 stands for it: recall opens it.";

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    /// Finds messages.
    Search,
    /// Opens a fold.
    Recall,
    /// Reports how full sessions are.
    Status,
}

/// The environment of a tool call.
pub(crate) struct ToolContext<'a> {
    pub(crate) engine: &'a SessionEngine,
    /// The session for calls that name none.
    pub(crate) session: Option<&'a str>,
    pub(crate) profiles: &'a dyn Profiles,
    /// Returns true once the call has timed out or was cancelled.
    pub(crate) is_over: &'a dyn Fn() -> bool,
}

impl Tool {
    pub(crate) const ALL: [Tool; 3] = [Tool::Search, Tool::Recall, Tool::Status];

    pub(crate) fn find(name: &str) -> Option<Tool> {
        Tool::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Tool::Search => "search",
            Tool::Recall => "recall",
            Tool::Status => "status",
        }
    }

    fn text(self) -> &'static str {
        match self {
            Tool::Search => {
                "Find what was said, in any session. query: words, \"phrases\", begin*, OR, NOT. session_id alone reads a \
                 session, with around_message_id what is around a message; nothing lists the newest sessions."
            }
            Tool::Recall => {
                "Open a fold: the original behind a handle, as it stood; whole, some lines, or the lines with a text. \
                 search without a handle looks in everything folded."
            }
            Tool::Status => {
                "How full a session's window is; its folds, pins and goal. Without session_id: the newest sessions."
            }
        }
    }

    /// The arguments in the schema.
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
                "handle": { "type": "string", "description": "#12, #7-11, #12.2" },
                "lines": { "type": "string", "description": "40, 1-40 or 40-" },
                "search": { "type": "string" },
                "offset": { "type": "integer" },
                "session_id": { "type": "string" },
            }),
            Tool::Status => json!({ "session_id": { "type": "string" } }),
        }
    }

    /// Arguments that are accepted but not in the schema.
    fn undocumented(self) -> &'static [&'static str] {
        match self {
            Tool::Search => &["profile", "source_filter", "max_chars"],
            Tool::Recall | Tool::Status => &[],
        }
    }

    /// The description for clients.
    pub(crate) fn description(self) -> Description {
        let mut schema = JsonObject::new();
        schema.insert("type".to_owned(), json!("object"));
        schema.insert("properties".to_owned(), self.properties());
        Description::new(self.name(), self.text(), Arc::new(schema))
            .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
    }

    /// Runs the tool. The answer is one or two texts: the result, and a note on it.
    pub(crate) fn run(
        self,
        context: &ToolContext<'_>,
        arguments: Map<String, Value>,
    ) -> Result<Vec<String>, ToolError> {
        let properties = self.properties();
        let names = properties.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let known: Vec<&str> = names.chain(self.undocumented().iter().copied()).collect();
        let arguments = JsonArguments::new(arguments, &known)?;
        match self {
            Tool::Search => search::run(context, &arguments),
            Tool::Recall => recall::run(context, &arguments),
            Tool::Status => status::run(context, &arguments),
        }
    }
}

impl ToolContext<'_> {
    /// The named session, or else the default session if there is one and it exists.
    fn session(&self, named: Option<&str>) -> Result<Option<SessionRow>, ToolError> {
        match (named, self.session) {
            (Some(name), _) => Ok(Some(self.engine.find(name)?)),
            (None, Some(name)) => Ok(self.engine.find(name).ok()),
            (None, None) => Ok(None),
        }
    }
}
