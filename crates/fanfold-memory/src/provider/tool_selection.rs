//! Selects the tools of an MCP server to search and write with: from the settings or a table of known servers.

use serde_json::{Map, Value, json};

use crate::provider::config::ToolSelection;
use crate::provider::error::MemoryError;

/// A tool as its server describes it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemoryTool {
    /// Its name.
    pub(crate) name: String,
    /// Its arguments.
    pub(crate) arguments: Vec<ToolArgument>,
}

/// An argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToolArgument {
    /// Its name.
    pub(crate) name: String,
    /// True if it is required.
    pub(crate) is_required: bool,
    /// True if its type is `string`.
    pub(crate) is_text: bool,
}

impl MemoryTool {
    /// Reads a tool from its name and the schema of its arguments.
    pub(crate) fn from_schema(name: &str, schema: &Map<String, Value>) -> MemoryTool {
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let arguments = properties.into_iter().flatten().map(|(name, about)| ToolArgument {
            name: name.clone(),
            is_required: is_required(name),
            is_text: about.get("type").is_some_and(|kind| kind == "string"),
        });
        MemoryTool { name: name.to_owned(), arguments: arguments.collect() }
    }

    fn has_argument(&self, argument: &str) -> bool {
        self.arguments.iter().any(|known| known.name == argument)
    }
}

/// The tools to search and write with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectedTools {
    pub(crate) search: SearchTool,
    /// `None` if no write tool is configured and none is known.
    pub(crate) write: Option<WriteTool>,
}

/// The tool to search with.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SearchTool {
    pub(crate) tool: String,
    pub(crate) argument: String,
    pub(crate) fixed_arguments: Map<String, Value>,
    /// True if it only matches literal text; it is then called once per search term.
    pub(crate) is_literal: bool,
}

/// How to write to the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WriteTool {
    /// A tool that takes a text.
    Text { tool: String, argument: String, fixed_arguments: Map<String, Value> },
    /// The tools of the MCP reference server, which stores observations of entities.
    Graph,
}

/// Search and write tools of known servers, best first.
const KNOWN_TOOLS: [(&str, &str); 8] = [
    ("search_nodes", "add_observations"),
    ("search_memories", "add_memory"),
    ("search_memory", "add_memories"),
    ("search-memories", "add-memory"),
    ("memory_search", "memory_add"),
    ("search_memory", "store_memory"),
    ("retrieve_memory", "store_memory"),
    ("recall_memory", "save_memory"),
];
/// Usual names of the arguments for a query and a text, best first.
const QUERY_ARGUMENTS: [&str; 5] = ["query", "q", "question", "text", "search"];
const TEXT_ARGUMENTS: [&str; 6] = ["text", "content", "memory", "data", "message", "observation"];
/// Tool of the reference server that creates entities.
pub(crate) const CREATE: &str = "create_entities";
/// Tool of the reference server that adds observations to entities.
pub(crate) const OBSERVE: &str = "add_observations";

impl SelectedTools {
    /// Selects the tools to use from those of a server.
    pub(crate) fn select(
        tools: &[MemoryTool],
        configured: &ToolSelection,
    ) -> Result<SelectedTools, MemoryError> {
        let find = |name: &str| tools.iter().find(|tool| tool.name == name);
        let known = || KNOWN_TOOLS.iter().find(|(search, _)| find(search).is_some());
        let search = match &configured.search {
            Some(name) => find(name).ok_or_else(|| MemoryError::NoTool(name.clone()))?,
            None => known().and_then(|(search, _)| find(search)).ok_or_else(|| no_search_tool(tools))?,
        };
        let argument = argument(search, configured.search_argument.as_deref(), &QUERY_ARGUMENTS)?;
        let fixed_arguments = fixed_arguments(search, &configured.fixed_arguments);
        let is_literal = search.name == "search_nodes";
        let search = SearchTool { tool: search.name.clone(), argument, fixed_arguments, is_literal };
        let is_graph = find(CREATE).is_some() && find(OBSERVE).is_some();
        let write = match &configured.write {
            Some(name) if name == OBSERVE && is_graph && configured.write_argument.is_none() => {
                Some(WriteTool::Graph)
            }
            Some(name) => {
                Some(text_tool(find(name).ok_or_else(|| MemoryError::NoTool(name.clone()))?, configured)?)
            }
            None if is_graph => Some(WriteTool::Graph),
            None => {
                let named = KNOWN_TOOLS.iter().filter(|(known, _)| *known == search.tool);
                let any = named.chain(&KNOWN_TOOLS).find_map(|(_, write)| find(write));
                any.and_then(|tool| text_tool(tool, configured).ok())
            }
        };
        Ok(SelectedTools { search, write })
    }

    /// A description of each call for the user.
    pub(crate) fn describe(&self) -> Vec<String> {
        let write = match &self.write {
            Some(WriteTool::Text { tool, argument, .. }) => format!("writes with {tool}({argument})"),
            Some(WriteTool::Graph) => format!("writes with {CREATE} and {OBSERVE}"),
            None => "writes nothing: no write tool was found or configured".to_owned(),
        };
        let suffix = if self.search.is_literal { ", once per search term" } else { "" };
        vec![format!("searches with {}({}){suffix}", self.search.tool, self.search.argument), write]
    }
}

fn text_tool(tool: &MemoryTool, configured: &ToolSelection) -> Result<WriteTool, MemoryError> {
    let argument = argument(tool, configured.write_argument.as_deref(), &TEXT_ARGUMENTS)?;
    Ok(WriteTool::Text {
        tool: tool.name.clone(),
        argument,
        fixed_arguments: fixed_arguments(tool, &configured.fixed_arguments),
    })
}

/// The argument for a text: the configured one, one with a usual name, or the only required string.
fn argument(tool: &MemoryTool, named: Option<&str>, usual: &[&str]) -> Result<String, MemoryError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    if let Some(usual) = usual.iter().find(|usual| tool.has_argument(usual)) {
        return Ok((*usual).to_owned());
    }
    let mut required = tool.arguments.iter().filter(|argument| argument.is_required && argument.is_text);
    match (required.next(), required.next()) {
        (Some(only), None) => Ok(only.name.clone()),
        _ => Err(MemoryError::NoTool(format!("{} with an unambiguous argument", tool.name))),
    }
}

/// The fixed arguments that a tool accepts.
fn fixed_arguments(tool: &MemoryTool, fixed_arguments: &Map<String, Value>) -> Map<String, Value> {
    fixed_arguments
        .iter()
        .filter(|(name, _)| tool.has_argument(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn no_search_tool(tools: &[MemoryTool]) -> MemoryError {
    let names: Vec<&str> = tools.iter().take(12).map(|tool| tool.name.as_str()).collect();
    MemoryError::NoTool(format!(
        "for searching; it has {}",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    ))
}

/// The arguments of a call with one text.
pub(crate) fn with_text(
    fixed_arguments: &Map<String, Value>,
    argument: &str,
    text: &str,
) -> Map<String, Value> {
    let mut arguments = fixed_arguments.clone();
    arguments.insert(argument.to_owned(), json!(text));
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: &Value) -> MemoryTool {
        MemoryTool::from_schema(name, schema.as_object().unwrap())
    }

    fn text(name: &str, arguments: &[&str]) -> MemoryTool {
        let properties: Map<String, Value> =
            arguments.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
        tool(name, &json!({ "properties": properties, "required": arguments }))
    }

    #[test]
    fn known_servers_need_no_settings() {
        let reference = [text(CREATE, &[]), text(OBSERVE, &[]), text("search_nodes", &["query"])];
        let selection = SelectedTools::select(&reference, &ToolSelection::default()).unwrap();
        assert_eq!(
            selection.describe(),
            [
                "searches with search_nodes(query), once per search term",
                "writes with create_entities and add_observations"
            ]
        );
        let mem0 = [text("add_memories", &["text"]), text("search_memory", &["query"]), text("list", &[])];
        let selection = SelectedTools::select(&mem0, &ToolSelection::default()).unwrap();
        assert_eq!(
            selection.describe(),
            ["searches with search_memory(query)", "writes with add_memories(text)"]
        );
    }

    #[test]
    fn unknown_servers_need_configured_tools() {
        let tools = [text("lookup", &["phrase"]), text("keep", &["user", "note"])];
        let none = SelectedTools::select(&tools, &ToolSelection::default()).unwrap_err();
        assert!(none.to_string().contains("it has lookup, keep"), "{none}");
        let fixed_arguments = json!({ "user": "me", "other": 1 }).as_object().unwrap().clone();
        let mut configured =
            ToolSelection { search: Some("lookup".into()), fixed_arguments, ..ToolSelection::default() };
        let selection = SelectedTools::select(&tools, &configured).unwrap();
        assert_eq!((selection.search.argument.as_str(), &selection.write), ("phrase", &None));
        configured.write = Some("keep".into());
        assert!(SelectedTools::select(&tools, &configured).is_err(), "two required strings are ambiguous");
        configured.write_argument = Some("note".into());
        let Some(WriteTool::Text { fixed_arguments, argument, .. }) =
            SelectedTools::select(&tools, &configured).unwrap().write
        else {
            panic!()
        };
        assert_eq!((fixed_arguments.len(), argument.as_str()), (1, "note"));
        configured.search = Some("gone".into());
        assert_eq!(SelectedTools::select(&tools, &configured), Err(MemoryError::NoTool("gone".into())));
    }
}
