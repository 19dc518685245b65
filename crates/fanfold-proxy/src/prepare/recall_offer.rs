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
pub(crate) const NO_RECALL: &str = "A [handle] stands for what was left out; if you need it, get it again.";

impl Recall {
    /// The alternative for a provider that rejects the recall tool.
    pub(crate) fn without_tool(self) -> Recall {
        if self == Recall::Tool { Recall::Off } else { self }
    }

    /// The offer for a session that begins with a body.
    pub(crate) fn offer(self, body: &str, format: Format, has_tools: bool) -> RecallOffer {
        let words = |words: &str| Some(words.to_owned());
        match self {
            // A conversation without tools has little to fold, and its client may not expect a call.
            Recall::Tool if has_tools && accepts_recall_tool(body, format) => RecallOffer {
                tool: recall_tool(format).map(str::to_owned),
                hint: words("Call fanfold_recall with a [handle] for the original."),
            },
            Recall::Mcp => RecallOffer {
                tool: None,
                hint: words(
                    "Call the tool recall of the MCP server fanfold with a [handle] for the original.",
                ),
            },
            Recall::Tool | Recall::Off => RecallOffer { tool: None, hint: words(NO_RECALL) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_conversations_with_tools_get_the_recall_tool() {
        let with = r#"{"model":"m","tools":[{"type":"function","function":{"name":"a"}}],"messages":[]}"#;
        let without = r#"{"model":"m","messages":[]}"#;
        assert!(Recall::Tool.offer(with, Format::Chat, true).tool.is_some());
        assert!(Recall::Tool.offer(without, Format::Chat, false).tool.is_none());
        assert!(Recall::Mcp.offer(with, Format::Chat, true).hint.is_some_and(|hint| hint.contains("MCP")));
        assert!(Recall::Off.offer(with, Format::Chat, true).tool.is_none());
    }
}
