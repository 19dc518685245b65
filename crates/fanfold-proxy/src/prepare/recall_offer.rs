//! How models recall folded originals: with a tool that the proxy answers, over MCP, or not at all. Stubs name the
//! method.

use fanfold_engine::RecallOffer;
use fanfold_wire::Format;
use fanfold_wire::reply::{accepts_recall_tool, recall_tool};

/// How models recall folded originals. A session keeps the method that it began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recall {
    /// With a tool that the proxy adds to those of the client, and answers itself.
    #[default]
    Tool,
    /// With the tool of an MCP server that the client uses.
    Mcp,
    /// Not at all; people still can, on the command line.
    Off,
}

/// Text of stubs if originals cannot be recalled.
pub(crate) const NO_RECALL: &str =
    "A handle such as #12 stands for what was left out; if you need it, get it again.";

impl Recall {
    /// The offer for a session that begins with a body, with a tool only if the client and the provider allow one.
    pub(crate) fn offer(self, body: &str, format: Format, allows_tool: bool) -> RecallOffer {
        let (tool, hint) = match self {
            Recall::Tool if allows_tool && accepts_recall_tool(body, format) => {
                (recall_tool(format), "Call fanfold_recall with a handle such as #12 for the original.")
            }
            Recall::Mcp => {
                let hint = "Call the tool recall of the MCP server fanfold with a handle such as #12 for the original.";
                (None, hint)
            }
            Recall::Tool | Recall::Off => (None, NO_RECALL),
        };
        RecallOffer { tool: tool.map(str::to_owned), hint: Some(hint.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recall_tool_is_offered_where_it_is_allowed() {
        let with = r#"{"model":"m","tools":[{"type":"function","function":{"name":"a"}}],"messages":[]}"#;
        let without = r#"{"model":"m","messages":[]}"#;
        assert!(Recall::Tool.offer(with, Format::Chat, true).tool.is_some());
        assert!(Recall::Tool.offer(without, Format::Chat, false).tool.is_none());
        assert!(Recall::Mcp.offer(with, Format::Chat, true).hint.is_some_and(|hint| hint.contains("MCP")));
        assert!(Recall::Off.offer(with, Format::Chat, true).tool.is_none());
    }
}
