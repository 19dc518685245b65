//! Which tools of an MCP server are searched and written with: as a person says, or as those that are known to be.

use serde_json::{Map, Value, json};

use crate::provider::config::ToolSelection;
use crate::provider::error::MemoryError;

/// A tool as a server describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryTool {
    /// Its name.
    pub name: String,
    /// The arguments it takes: each with whether it is needed, and whether it is a text.
    pub arguments: Vec<ToolArgument>,
}

/// An argument of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolArgument {
    /// Its name.
    pub name: String,
    /// Whether it has to be given.
    pub is_needed: bool,
    /// Whether it is a text.
    pub is_text: bool,
}

impl MemoryTool {
    /// A tool, from its name and the schema of its arguments.
    pub(crate) fn from_schema(name: &str, schema: &Map<String, Value>) -> MemoryTool {
        let needed = schema.get("required").and_then(Value::as_array);
        let is_needed = |name: &str| needed.is_some_and(|all| all.iter().any(|one| one == name));
        let properties = schema.get("properties").and_then(Value::as_object);
        let arguments = properties.into_iter().flatten().map(|(name, about)| ToolArgument {
            name: name.clone(),
            is_needed: is_needed(name),
            is_text: about.get("type").is_some_and(|kind| kind == "string"),
        });
        MemoryTool { name: name.to_owned(), arguments: arguments.collect() }
    }

    fn has(&self, argument: &str) -> bool {
        self.arguments.iter().any(|known| known.name == argument)
    }
}

/// How a server is searched and written to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SelectedTools {
    pub(crate) search: SearchTool,
    /// None where it can only be read.
    pub(crate) write: Option<WriteTool>,
}

/// How a server is searched.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SearchTool {
    pub(crate) tool: String,
    pub(crate) argument: String,
    pub(crate) always: Map<String, Value>,
    /// Whether it finds only what stands in a text as it is asked for: then it is asked for single words.
    pub(crate) is_literal: bool,
}

/// How a server is written to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WriteTool {
    /// A text, by one tool.
    Text { tool: String, argument: String, always: Map<String, Value> },
    /// Observations of an entity, as the reference server keeps them.
    Graph,
}

/// Tools of servers that are known, best first: searched with, written with.
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
/// The arguments that say for what or what, best first.
const QUERY_ARGUMENTS: [&str; 5] = ["query", "q", "question", "text", "search"];
const TEXT_ARGUMENTS: [&str; 6] = ["text", "content", "memory", "data", "message", "observation"];
/// The tool by which the reference server makes entities.
pub(crate) const CREATE: &str = "create_entities";
/// The tool by which it adds to them.
pub(crate) const OBSERVE: &str = "add_observations";

impl SelectedTools {
    /// Chooses among the tools that a server has.
    pub(crate) fn select(tools: &[MemoryTool], wish: &ToolSelection) -> Result<SelectedTools, MemoryError> {
        let find = |name: &str| tools.iter().find(|tool| tool.name == name);
        let known = || KNOWN_TOOLS.iter().find(|(search, _)| find(search).is_some());
        let search = match &wish.search {
            Some(name) => find(name).ok_or_else(|| MemoryError::NoTool(name.clone()))?,
            None => known().and_then(|(search, _)| find(search)).ok_or_else(|| no_search_tool(tools))?,
        };
        let argument = argument(search, wish.search_argument.as_deref(), &QUERY_ARGUMENTS)?;
        let always = always(search, &wish.fixed_arguments);
        let is_literal = search.name == "search_nodes";
        let search = SearchTool { tool: search.name.clone(), argument, always, is_literal };
        let is_graph = find(CREATE).is_some() && find(OBSERVE).is_some();
        let write = match &wish.write {
            Some(name) if name == OBSERVE && is_graph && wish.write_argument.is_none() => {
                Some(WriteTool::Graph)
            }
            Some(name) => {
                Some(text_tool(find(name).ok_or_else(|| MemoryError::NoTool(name.clone()))?, wish)?)
            }
            None if is_graph => Some(WriteTool::Graph),
            None => {
                let named = KNOWN_TOOLS.iter().filter(|(known, _)| *known == search.tool);
                let any = named.chain(&KNOWN_TOOLS).find_map(|(_, write)| find(write));
                any.and_then(|tool| text_tool(tool, wish).ok())
            }
        };
        Ok(SelectedTools { search, write })
    }

    /// What is called, for a person: a line for each.
    pub(crate) fn describe(&self) -> Vec<String> {
        let write = match &self.write {
            Some(WriteTool::Text { tool, argument, .. }) => format!("writes with {tool}({argument})"),
            Some(WriteTool::Graph) => format!("writes with {CREATE} and {OBSERVE}"),
            None => "writes nothing: it has no tool for that, or none is named".to_owned(),
        };
        let by = if self.search.is_literal { ", word by word" } else { "" };
        vec![format!("searches with {}({}){by}", self.search.tool, self.search.argument), write]
    }
}

fn text_tool(tool: &MemoryTool, wish: &ToolSelection) -> Result<WriteTool, MemoryError> {
    let argument = argument(tool, wish.write_argument.as_deref(), &TEXT_ARGUMENTS)?;
    Ok(WriteTool::Text { tool: tool.name.clone(), argument, always: always(tool, &wish.fixed_arguments) })
}

/// The argument of a tool that is meant: the one that is named, a usual one, or the only text that it needs.
fn argument(tool: &MemoryTool, named: Option<&str>, usual: &[&str]) -> Result<String, MemoryError> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    if let Some(usual) = usual.iter().find(|usual| tool.has(usual)) {
        return Ok((*usual).to_owned());
    }
    let mut needed = tool.arguments.iter().filter(|argument| argument.is_needed && argument.is_text);
    match (needed.next(), needed.next()) {
        (Some(only), None) => Ok(only.name.clone()),
        _ => Err(MemoryError::NoTool(format!("{} whose argument is clear", tool.name))),
    }
}

/// Of the arguments that are always given, those that a tool has.
fn always(tool: &MemoryTool, always: &Map<String, Value>) -> Map<String, Value> {
    always
        .iter()
        .filter(|(name, _)| tool.has(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn no_search_tool(tools: &[MemoryTool]) -> MemoryError {
    let names: Vec<&str> = tools.iter().take(12).map(|tool| tool.name.as_str()).collect();
    MemoryError::NoTool(format!(
        "that is known to search; it has {}",
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    ))
}

/// The arguments of a call with one text.
pub(crate) fn with_text(always: &Map<String, Value>, argument: &str, text: &str) -> Map<String, Value> {
    let mut arguments = always.clone();
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
        let chosen = SelectedTools::select(&reference, &ToolSelection::default()).unwrap();
        assert_eq!(
            chosen.describe(),
            [
                "searches with search_nodes(query), word by word",
                "writes with create_entities and add_observations"
            ]
        );
        let mem0 = [text("add_memories", &["text"]), text("search_memory", &["query"]), text("list", &[])];
        let chosen = SelectedTools::select(&mem0, &ToolSelection::default()).unwrap();
        assert_eq!(
            chosen.describe(),
            ["searches with search_memory(query)", "writes with add_memories(text)"]
        );
    }

    #[test]
    fn others_are_named_and_what_can_not_be_is_told() {
        let tools = [text("lookup", &["phrase"]), text("keep", &["user", "note"])];
        let none = SelectedTools::select(&tools, &ToolSelection::default()).unwrap_err();
        assert!(none.to_string().contains("it has lookup, keep"), "{none}");
        let always = json!({ "user": "me", "other": 1 }).as_object().unwrap().clone();
        let mut wish = ToolSelection {
            search: Some("lookup".into()),
            fixed_arguments: always,
            ..ToolSelection::default()
        };
        let chosen = SelectedTools::select(&tools, &wish).unwrap();
        assert_eq!((chosen.search.argument.as_str(), &chosen.write), ("phrase", &None));
        wish.write = Some("keep".into());
        assert!(SelectedTools::select(&tools, &wish).is_err(), "two texts are needed: which one is it?");
        wish.write_argument = Some("note".into());
        let Some(WriteTool::Text { always, argument, .. }) =
            SelectedTools::select(&tools, &wish).unwrap().write
        else {
            panic!()
        };
        assert_eq!((always.len(), argument.as_str()), (1, "note"));
        wish.search = Some("gone".into());
        assert_eq!(SelectedTools::select(&tools, &wish), Err(MemoryError::NoTool("gone".into())));
    }
}
