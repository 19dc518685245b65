//! How a model opens folds: by a tool that is answered here, over MCP, or not at all. Folds name the way that exists.

use std::sync::Arc;

use fanfold_core::{Extent, Handle, thousands};
use fanfold_engine::{Engine, Offer};
use fanfold_store::SessionId;
use fanfold_wire::Format;
use fanfold_wire::reply::{RecallRequest, accepts_recall_tool, recall_tool};

/// How a model opens folds. A session keeps the way that it began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recall {
    /// By a tool that is added to the client's, and answered here.
    #[default]
    Tool,
    /// By the tool of an MCP server, which the client has.
    Mcp,
    /// Not at all; people still can.
    Off,
}

/// What folds say where no way exists.
pub(crate) const NO_WAY: &str = "A [handle] stands for what was left out; if you need it, get it again.";

/// The shortest that an original is cut to.
const LEAST: usize = 1_000;
/// The longest that all originals of one answer are together, in bytes: some 6,000 tokens.
const MOST: usize = 24_000;

impl Recall {
    /// The way that is left at a provider that takes no tool of ours.
    pub(crate) fn without_tool(self) -> Recall {
        if self == Recall::Tool { Recall::Off } else { self }
    }

    /// What a session that begins with a body is offered.
    pub(crate) fn offer(self, body: &str, format: Format) -> Offer {
        let words = |words: &str| Some(words.to_owned());
        match self {
            // A conversation without tools has little to fold, and its answers may not expect a call.
            Recall::Tool if accepts_recall_tool(body, format) && has_tools(body) => Offer {
                tool: recall_tool(format).map(str::to_owned),
                words: words("Call fanfold_recall with a [handle] for the original."),
            },
            Recall::Mcp => Offer {
                tool: None,
                words: words(
                    "Call the tool recall of the MCP server fanfold with a [handle] for the original.",
                ),
            },
            Recall::Tool | Recall::Off => Offer { tool: None, words: words(NO_WAY) },
        }
    }
}

/// Whether a body has tools.
pub(crate) fn has_tools(body: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Tools<'a> {
        #[serde(borrow, default)]
        tools: Vec<&'a serde_json::value::RawValue>,
    }
    serde_json::from_str::<Tools<'_>>(body).is_ok_and(|body| !body.tools.is_empty())
}

/// The originals that a model wants, in its order, or what it is told instead. No more than there is room for.
pub(crate) fn originals(
    engine: &Arc<Engine>,
    session: &SessionId,
    wanted: &[RecallRequest],
    n_room: usize,
) -> Vec<String> {
    let each = (n_room.min(MOST) / wanted.len().max(1)).max(LEAST);
    wanted.iter().map(|wanted| original(engine, session, wanted, each)).collect()
}

fn original(engine: &Engine, session: &SessionId, wanted: &RecallRequest, most: usize) -> String {
    let Ok(handle) = wanted.handle.parse::<Handle>() else {
        return format!("`{}` is no handle: give the digits that stand in brackets.", wanted.handle);
    };
    match engine.recall(session, handle, &wanted.extent) {
        Ok(original) => cut(original, &wanted.extent, most),
        Err(error) => {
            format!("{error}. Give a handle that stands in this conversation, and lines that it has.")
        }
    }
}

/// The beginning of a text, in whole lines where it has any, and how to get the rest.
fn cut(original: String, extent: &Extent, most: usize) -> String {
    if original.len() <= most {
        return original;
    }
    let end = original.floor_char_boundary(most);
    let end = original[..end].rfind('\n').filter(|at| *at > 0).unwrap_or(end);
    let newlines = |text: &str| text.bytes().filter(|byte| *byte == b'\n').count();
    let (n_shown, n_lines) = (newlines(&original[..end]) + 1, newlines(&original) + 1);
    let rest = match extent {
        Extent::Lines(from, _) => format!("go on with lines \"{}-{}\"", from + n_shown, from + n_lines - 1),
        Extent::Whole => format!("go on with lines \"{}-{n_lines}\", or search for a text", n_shown + 1),
        _ => "search for something rarer".to_owned(),
    };
    let (n_shown, n_lines) = (thousands(n_shown as u64), thousands(n_lines as u64));
    format!("{}\n[{n_shown} of {n_lines} lines; {rest}]", &original[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_original_says_how_to_go_on() {
        let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        let shown = cut(text.clone(), &Extent::Whole, 30);
        assert_eq!(
            shown,
            "line 1\nline 2\nline 3\nline 4\n[4 of 101 lines; go on with lines \"5-101\", or search for a text]"
        );
        assert_eq!(cut(text.clone(), &Extent::Whole, 10_000), text);
        let lines = cut("é".repeat(40), &Extent::Lines(7, 7), 31);
        assert!(lines.starts_with(&"é".repeat(15)) && lines.contains("\"8-7\""), "{lines}");
    }

    #[test]
    fn only_conversations_with_tools_get_one() {
        let with = r#"{"model":"m","tools":[{"type":"function","function":{"name":"a"}}],"messages":[]}"#;
        let without = r#"{"model":"m","messages":[]}"#;
        assert!(Recall::Tool.offer(with, Format::Chat).tool.is_some());
        assert!(Recall::Tool.offer(without, Format::Chat).tool.is_none());
        assert!(Recall::Mcp.offer(with, Format::Chat).words.is_some_and(|words| words.contains("MCP")));
        assert!(Recall::Off.offer(with, Format::Chat).tool.is_none());
    }
}
