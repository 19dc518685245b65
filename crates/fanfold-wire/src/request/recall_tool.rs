//! The recall tool: its declaration in requests, and the arguments of its calls.
//!
//! It is the first tool of a request. Tools that the client adds later, and a cache marker on the last tool, keep their
//! position, so the provider's cache keeps its prefix.

use fanfold_core::Extent;

use crate::dialects::Format;
use crate::json::{self, Object, Splices};
use crate::reply::reader::ToolCall;

/// The name of the recall tool.
pub const RECALL_TOOL: &str = "fanfold_recall";

macro_rules! description {
    () => {
        r#""description":"Opens a fold: gives the original of a handle (#12, #7-11, #12.2) of this conversation, whole, by lines, or the lines that hold a text. Without a handle, searches everything folded.""#
    };
}

macro_rules! parameters {
    () => {
        r#"{"type":"object","properties":{"handle":{"type":"string"},"lines":{"type":"string","description":"from-to, counted from 1"},"search":{"type":"string"}}}"#
    };
}

pub(crate) use {description, parameters};

/// The declaration of the tool in a format; `None` for file formats.
pub fn recall_tool(format: Format) -> Option<&'static str> {
    Some(format.api()?.recall_tool())
}

/// Returns whether a conversation that begins with this request may be offered the tool.
///
/// Not if the model must not call tools, if only a structured reply or several replies are requested, or if the client
/// has a tool of that name.
pub fn accepts_recall_tool(body: &str, format: Format) -> bool {
    let Some(object) = Object::parse(body) else { return false };
    let may_call = !forbids_tools(&object) && object.some("functions").is_none();
    let has_one_reply = object.get("n").is_none_or(|n| matches!(n, "1" | "null"));
    let is_in_foreground = object.get("background") != Some("true");
    may_call
        && has_one_reply
        && is_in_foreground
        && !wants_only_structure(&object)
        && add_recall_tool(body, format).is_some()
}

/// The request with the tool, and every other byte unchanged. `None` if it has the tool or no place for it.
pub fn add_recall_tool(body: &str, format: Format) -> Option<String> {
    let tool = recall_tool(format)?;
    let object = Object::parse(body)?;
    let mut splices = Splices::default();
    match object.some("tools") {
        Some(tools) => {
            let declared = json::array(tools)?;
            if declared.iter().any(|tool| name_of(tool).as_deref() == Some(RECALL_TOOL)) {
                return None;
            }
            let start = json::span(body, tools).start + 1;
            let comma = if declared.is_empty() { "" } else { "," };
            splices.replace(start..start, format!("{tool}{comma}"));
        }
        None => match object.get("tools") {
            Some(null) => splices.replace(json::span(body, null), format!("[{tool}]")),
            None => {
                let start = body.find('{')? + 1;
                let comma = if object.fields.is_empty() { "" } else { "," };
                splices.replace(start..start, format!("\"tools\":[{tool}]{comma}"));
            }
        },
    }
    Some(splices.apply(body))
}

/// The request without the tool added by [`add_recall_tool`], and every other byte unchanged. `None` if it is absent.
pub fn remove_recall_tool(body: &str, format: Format) -> Option<String> {
    let tool = recall_tool(format)?;
    let first = *json::array(Object::parse(body)?.some("tools")?)?.first()?;
    let span = json::span(body, first);
    let end = span.end + usize::from(body[span.end..].starts_with(','));
    (first == tool).then(|| format!("{}{}", &body[..span.start], &body[end..]))
}

fn name_of(tool: &str) -> Option<String> {
    let tool = Object::parse(tool)?;
    let function = tool.some("function").and_then(Object::parse);
    tool.text("name").or_else(|| function?.text("name")).map(Into::into)
}

fn forbids_tools(body: &Object<'_>) -> bool {
    let Some(choice) = body.some("tool_choice") else { return false };
    let kind = json::string(choice).map(|text| text.text);
    let kind = kind.or_else(|| Object::parse(choice)?.text("type"));
    kind.as_deref() == Some("none")
}

/// Returns whether a request has no tools and wants a reply of a given structure.
pub(super) fn wants_only_structure(body: &Object<'_>) -> bool {
    let has_tools = body.some("tools").and_then(json::array).is_some_and(|tools| !tools.is_empty());
    let inner = |outer: &str, key: &str| body.some(outer).and_then(Object::parse)?.some(key);
    let formats = [
        body.some("response_format"),
        body.some("output_format"),
        inner("text", "format"),
        inner("output_config", "format"),
    ];
    let is_structured = |format: &str| {
        let kind = Object::parse(format).and_then(|format| format.text("type"));
        kind.is_some_and(|kind| kind != "text")
    };
    !has_tools && formats.into_iter().flatten().any(is_structured)
}

/// Returns whether a call is one of the recall tool.
pub(crate) fn is_recall(call: &ToolCall) -> bool {
    call.name == RECALL_TOOL
}

/// The arguments of a call of the recall tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecallRequest {
    /// The id of the call.
    pub call: String,
    /// The handle as the model wrote it; empty if it gave none.
    pub handle: String,
    /// The part of the original.
    pub extent: Extent,
}

impl RecallRequest {
    /// Reads a call. Accepts numbers for strings, and `10..40`.
    pub fn read(call: &ToolCall) -> RecallRequest {
        let object = Object::parse(&call.arguments);
        let text = |key: &str| {
            let value = object.as_ref()?.some(key)?;
            let text = json::string(value).map_or(value.to_owned(), |text| text.text.into_owned());
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let handle = text("handle").unwrap_or_default();
        let extent = match (text("search"), text("lines")) {
            (Some(text), _) => Extent::Search { text, around: 2 },
            (None, Some(lines)) => parse_lines(&lines).unwrap_or_default(),
            (None, None) => Extent::Whole,
        };
        RecallRequest { call: call.id.clone(), handle, extent }
    }
}

fn parse_lines(text: &str) -> Option<Extent> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let from = numbers.next()?.parse().ok()?;
    let to = numbers.next().map_or(Some(from), |digits| digits.parse().ok())?;
    Some(Extent::Lines(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_the_tool_changes_nothing_else() {
        let cases = [
            (
                Format::Chat,
                r#"{"model":"m", "messages":[] }"#,
                r#"{"tools":[T],"model":"m", "messages":[] }"#,
            ),
            (Format::Chat, r#"{"tools" : [ {"a":1} ],"x":2}"#, r#"{"tools" : [T, {"a":1} ],"x":2}"#),
            (Format::Responses, r#"{"tools":[],"input":"hi"}"#, r#"{"tools":[T],"input":"hi"}"#),
            (Format::Responses, r#"{"tools":null}"#, r#"{"tools":[T]}"#),
            (
                Format::Anthropic,
                r#"{"tools":[{"name":"a"},{"name":"b","cache_control":{"type":"ephemeral"}}]}"#,
                r#"{"tools":[T,{"name":"a"},{"name":"b","cache_control":{"type":"ephemeral"}}]}"#,
            ),
            (Format::Anthropic, "{}", r#"{"tools":[T]}"#),
        ];
        for (format, body, expected) in cases {
            let tool = recall_tool(format).unwrap();
            let offered = add_recall_tool(body, format).unwrap();
            assert_eq!(offered, expected.replace('T', tool), "{body}");
            assert!(json::is_valid(&offered));
            assert_eq!(add_recall_tool(&offered, format), None, "it is not inserted twice");
            let has_list = body.contains("\"tools\"") && !body.contains("null");
            let again = remove_recall_tool(&offered, format);
            assert!(
                !has_list || again.as_deref() == Some(body),
                "removing the tool restores the body: {again:?}"
            );
            assert_eq!(remove_recall_tool(body, format), None, "a body without the tool is unchanged");
        }
    }

    #[test]
    fn requests_without_tool_calls_are_not_offered_the_tool() {
        let no = [
            (Format::Chat, r#"{"tools":[{}],"tool_choice":"none"}"#),
            (Format::Anthropic, r#"{"tools":[{}],"tool_choice":{"type":"none"}}"#),
            (Format::Chat, r#"{"response_format":{"type":"json_schema"}}"#),
            (Format::Responses, r#"{"text":{"format":{"type":"json_schema"}}}"#),
            (Format::Anthropic, r#"{"output_config":{"format":{"type":"json_schema"}}}"#),
            (Format::Chat, r#"{"functions":[{}]}"#),
            (Format::Chat, r#"{"n":2}"#),
            (Format::Responses, r#"{"background":true}"#),
            (Format::Chat, r#"{"tools":[{"type":"function","function":{"name":"fanfold_recall"}}]}"#),
            (Format::Hermes, "{}"),
            (Format::Chat, "[]"),
        ];
        for (format, body) in no {
            assert!(!accepts_recall_tool(body, format), "{body}");
        }
        let yes = [
            (Format::Chat, r#"{"messages":[]}"#),
            (Format::Chat, r#"{"tools":[{}],"tool_choice":"required","n":1}"#),
            (Format::Chat, r#"{"tools":[{}],"response_format":{"type":"json_schema"}}"#),
            (Format::Responses, r#"{"text":{"format":{"type":"text"},"verbosity":"low"}}"#),
            (Format::Anthropic, r#"{"tool_choice":{"type":"auto"}}"#),
        ];
        for (format, body) in yes {
            assert!(accepts_recall_tool(body, format), "{body}");
        }
    }

    #[test]
    fn malformed_arguments_are_accepted() {
        let read = |arguments: &str| {
            let call = ToolCall { id: "c".into(), name: RECALL_TOOL.into(), arguments: arguments.into() };
            let request = RecallRequest::read(&call);
            (request.handle, request.extent)
        };
        assert_eq!(read(r##"{"handle":" #12.2"}"##), ("#12.2".into(), Extent::Whole));
        let everywhere = Extent::Search { text: "worth".into(), around: 2 };
        assert_eq!(read(r#"{"search":"worth"}"#), (String::new(), everywhere));
        assert_eq!(read(r#"{"handle":123456,"lines":"10-40"}"#), ("123456".into(), Extent::Lines(10, 40)));
        assert_eq!(read(r#"{"handle":"123456","lines":7}"#), ("123456".into(), Extent::Lines(7, 7)));
        let search = Extent::Search { text: "worth".into(), around: 2 };
        assert_eq!(read(r#"{"handle":"123456","lines":"","search":"worth"}"#), ("123456".into(), search));
        assert_eq!(read("nonsense"), (String::new(), Extent::Whole));
        assert_eq!(read(""), (String::new(), Extent::Whole));
    }
}
