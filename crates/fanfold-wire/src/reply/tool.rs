//! The recall tool: how it is offered to a model, and what a call of it wants.
//!
//! It stands first among the tools. What a client adds behind it, and a cache breakpoint on the last one, stay where
//! they are, so the provider's cache keeps the prefix.

use fanfold_core::Extent;

use super::said::Called;
use crate::format::Format;
use crate::json::{self, Object};
use crate::splice::Splices;

/// The name of the recall tool.
pub const RECALL_TOOL: &str = "fanfold_recall";

macro_rules! description {
    () => {
        r#""description":"Opens a fold: gives the original behind a [handle] of this conversation, whole, by lines, or the lines that hold a text.""#
    };
}

macro_rules! parameters {
    () => {
        r#"{"type":"object","properties":{"handle":{"type":"string"},"lines":{"type":"string","description":"from-to, counted from 1"},"search":{"type":"string"}},"required":["handle"]}"#
    };
}

const CHAT: &str = concat!(
    r#"{"type":"function","function":{"name":"fanfold_recall","#,
    description!(),
    r#","parameters":"#,
    parameters!(),
    "}}"
);
// Functions of Responses are strict unless they say otherwise, and a strict one has no optional arguments.
const RESPONSES: &str = concat!(
    r#"{"type":"function","name":"fanfold_recall","#,
    description!(),
    r#","parameters":"#,
    parameters!(),
    r#","strict":false}"#
);
const ANTHROPIC: &str =
    concat!(r#"{"name":"fanfold_recall","#, description!(), r#","input_schema":"#, parameters!(), "}");

/// The tool as a format writes it. None for formats that no provider is asked in.
pub fn recall_tool(format: Format) -> Option<&'static str> {
    match format {
        Format::Chat => Some(CHAT),
        Format::Responses => Some(RESPONSES),
        Format::Anthropic => Some(ANTHROPIC),
        Format::ShareGpt | Format::Hermes => None,
    }
}

/// Whether a conversation that begins with this request may be given the tool.
///
/// Not where the model may call nothing, where only a structured answer is wanted, where several answers are, or where
/// the client has a tool of that name.
pub fn may_offer_recall(body: &str, format: Format) -> bool {
    let Some(object) = Object::parse(body) else { return false };
    let is_free = !is_choice_none(&object) && object.some("functions").is_none();
    let is_one = object.get("n").is_none_or(|n| matches!(n, "1" | "null"));
    let is_awaited = object.get("background") != Some("true");
    let has_tools = object.some("tools").and_then(json::array).is_some_and(|tools| !tools.is_empty());
    let is_structured = !has_tools && wants_structure(&object);
    is_free && is_one && is_awaited && !is_structured && with_recall_tool(body, format).is_some()
}

/// The request with the tool among its tools, and every other byte as it was. None where it can't be there.
pub fn with_recall_tool(body: &str, format: Format) -> Option<String> {
    let tool = recall_tool(format)?;
    let object = Object::parse(body)?;
    let mut splices = Splices::default();
    match object.some("tools") {
        Some(tools) => {
            let there = json::array(tools)?;
            if there.iter().any(|tool| name_of(tool).as_deref() == Some(RECALL_TOOL)) {
                return None;
            }
            let start = json::span(body, tools).start + 1;
            splices
                .replace(start..start, if there.is_empty() { tool.to_owned() } else { format!("{tool},") });
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

/// The request without the tool that was put among its tools, and every other byte as it was. None where it is not there.
pub fn without_recall_tool(body: &str, format: Format) -> Option<String> {
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

fn is_choice_none(body: &Object<'_>) -> bool {
    let Some(choice) = body.some("tool_choice") else { return false };
    let kind = json::string(choice).map(|text| text.text);
    let kind = kind.or_else(|| Object::parse(choice)?.text("type"));
    kind.as_deref() == Some("none")
}

/// Whether a request wants an answer of a given structure.
pub(crate) fn wants_structure(body: &Object<'_>) -> bool {
    let inner = |outer: &str, key: &str| body.some(outer).and_then(Object::parse)?.some(key);
    let formats = [
        body.some("response_format"),
        body.some("output_format"),
        inner("text", "format"),
        inner("output_config", "format"),
    ];
    formats.into_iter().flatten().any(|format| {
        let kind = Object::parse(format).and_then(|format| format.text("type"));
        kind.is_some_and(|kind| kind != "text")
    })
}

/// What a call of the tool wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The id of the call.
    pub call: String,
    /// The handle, without brackets; empty where the model gave none.
    pub handle: String,
    /// How much of the original.
    pub extent: Extent,
}

impl Wanted {
    /// Reads a call, forgiving what models write: brackets around handles, numbers for strings, `10..40`.
    pub fn read(call: &Called) -> Wanted {
        let object = Object::parse(&call.arguments);
        let text = |key: &str| {
            let value = object.as_ref()?.some(key)?;
            let text = json::string(value).map_or(value.to_owned(), |text| text.text.into_owned());
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let handle = text("handle").unwrap_or_default();
        let handle = handle.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned();
        let extent = match (text("search"), text("lines")) {
            (Some(text), _) => Extent::Search { text, around: 2 },
            (None, Some(lines)) => lines_of(&lines).unwrap_or_default(),
            (None, None) => Extent::Whole,
        };
        Wanted { call: call.id.clone(), handle, extent }
    }
}

fn lines_of(text: &str) -> Option<Extent> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let from = numbers.next()?.parse().ok()?;
    let to = numbers.next().map_or(Some(from), |digits| digits.parse().ok())?;
    Some(Extent::Lines(from, to))
}

/// Whether a call is one of ours.
pub(super) fn is_ours(call: &Called) -> bool {
    call.name == RECALL_TOOL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_spliced_in_and_nothing_else_changes() {
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
            let offered = with_recall_tool(body, format).unwrap();
            assert_eq!(offered, expected.replace('T', tool), "{body}");
            assert!(json::is_valid(&offered));
            assert_eq!(with_recall_tool(&offered, format), None, "it is there already");
            let has_list = body.contains("\"tools\"") && !body.contains("null");
            let again = without_recall_tool(&offered, format);
            assert!(!has_list || again.as_deref() == Some(body), "taken out again: {again:?}");
            assert_eq!(without_recall_tool(body, format), None, "it is not there");
        }
    }

    #[test]
    fn it_is_not_offered_where_it_can_not_be_called() {
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
            assert!(!may_offer_recall(body, format), "{body}");
        }
        let yes = [
            (Format::Chat, r#"{"messages":[]}"#),
            (Format::Chat, r#"{"tools":[{}],"tool_choice":"required","n":1}"#),
            (Format::Chat, r#"{"tools":[{}],"response_format":{"type":"json_schema"}}"#),
            (Format::Responses, r#"{"text":{"format":{"type":"text"},"verbosity":"low"}}"#),
            (Format::Anthropic, r#"{"tool_choice":{"type":"auto"}}"#),
        ];
        for (format, body) in yes {
            assert!(may_offer_recall(body, format), "{body}");
        }
    }

    #[test]
    fn calls_are_read_forgivingly() {
        let read = |arguments: &str| {
            let call = Called { id: "c".into(), name: RECALL_TOOL.into(), arguments: arguments.into() };
            let wanted = Wanted::read(&call);
            (wanted.handle, wanted.extent)
        };
        assert_eq!(read(r#"{"handle":"[123456]"}"#), ("123456".into(), Extent::Whole));
        assert_eq!(read(r#"{"handle":123456,"lines":"10-40"}"#), ("123456".into(), Extent::Lines(10, 40)));
        assert_eq!(read(r#"{"handle":"123456","lines":7}"#), ("123456".into(), Extent::Lines(7, 7)));
        let search = Extent::Search { text: "worth".into(), around: 2 };
        assert_eq!(read(r#"{"handle":"123456","lines":"","search":"worth"}"#), ("123456".into(), search));
        assert_eq!(read("nonsense"), (String::new(), Extent::Whole));
        assert_eq!(read(""), (String::new(), Extent::Whole));
    }
}
