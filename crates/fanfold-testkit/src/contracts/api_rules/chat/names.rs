//! The names of the rules of Chat Completions, each with its source.
//!
//! *Description* means OpenAI's OpenAPI description of the API: `CreateChatCompletionRequest` and the schemas it
//! refers to. Quotes are error messages of the API.

// Description: both are required, and `messages` has `minItems: 1`.
pub(super) const NO_MODEL: &str = "`model` is a string";
pub(super) const NO_MESSAGES: &str = "`messages` is a non-empty list";
// Description: `ChatCompletionRequestMessage`, one schema for each role.
pub(super) const ROLE: &str = "a role is developer, system, user, assistant, tool or function";
// Description: "Required unless `tool_calls` or `function_call` is specified", and the content of a function
// message may be null. "Invalid value for 'content': expected a string, got null".
pub(super) const NO_CONTENT: &str =
    "a message has content; it may be null for functions and for assistants that call tools";
// Description: `minItems: 1` for every list of parts, and the part types of each role.
pub(super) const EMPTY_PARTS: &str = "a list of parts is not empty";
pub(super) const PART: &str = "a part has a type that its role allows";
pub(super) const PART_TEXT: &str = "a text part has a text";
// Description: the assistant's content is "one or more of type `text`, or exactly one of type `refusal`".
pub(super) const REFUSED: &str = "an assistant's parts are texts, or a single refusal";
// Description: `image_url.url` is a URL or base64 data, of the format `uri`.
pub(super) const IMAGE: &str = "an image has a URL or image data";
// "Invalid 'messages[0].name': string does not match pattern", which is `^[^\s<|\\/>]+$`; "maximum length 64".
pub(super) const NAME: &str = "a name has no spaces, `<`, `|`, `\\`, `/` or `>`, and at most 64 characters";
// Description: only assistant messages have the field `tool_calls`.
pub(super) const CALLS_ROLE: &str = "only assistant messages have tool calls";
// "[] is too short - 'messages.1.tool_calls'"; "array too long. Expected an array with maximum length 128".
pub(super) const N_CALLS: &str = "a list of calls has 1 to 128 entries";
// "Invalid 'messages[10].tool_calls[0].id': string too long", with a maximum of 40.
pub(super) const CALL_ID: &str = "a call id has 1 to 40 characters";
// Description: `ChatCompletionMessageToolCall` and `ChatCompletionMessageCustomToolCall`.
pub(super) const CALL_TYPE: &str = "a call has the type function or custom";
pub(super) const ARGUMENTS: &str = "arguments are a string";
// "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'", with a maximum of
// 64.
pub(super) const CALL_NAME: &str = "the name of a called tool has at most 64 letters, digits, `_` and `-`";
// "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'".
pub(super) const UNANSWERED: &str = "every call has a tool message directly after it";
// "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'".
pub(super) const STRAY: &str = "a tool message belongs to a call of the assistant message before it";
// Not documented, but it follows from the two rules above, and a request should not depend on more than they allow.
pub(super) const DOUBLE_ID: &str = "the calls of a message have different ids";
pub(super) const TWICE: &str = "a call has one result";
// Description: `ChatCompletionRequestFunctionMessage` requires it.
pub(super) const FUNCTION: &str = "a function message has the function's name";
// "Additional properties are not allowed ('mood' was unexpected) - 'messages.1'".
pub(super) const UNKNOWN: &str = "a message has no unknown fields";
// Description: `FunctionObject.name`. "Invalid 'tools': array too long. Expected an array with maximum length 128".
pub(super) const TOOLS: &str =
    "there are at most 128 tools, with different names of at most 64 letters, digits, `_` and `-`";
// "Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"'"; it may be left out.
pub(super) const SCHEMA: &str = "the parameters of a function are an object schema";
// "'tool_choice' is only allowed when 'tools' are specified".
pub(super) const CHOICE: &str = "`tool_choice` and `parallel_tool_calls` require tools";

pub(in crate::contracts::api_rules) const RULES: &[&str] = &[
    NO_MODEL,
    NO_MESSAGES,
    ROLE,
    NO_CONTENT,
    EMPTY_PARTS,
    PART,
    PART_TEXT,
    REFUSED,
    IMAGE,
    NAME,
    CALLS_ROLE,
    N_CALLS,
    CALL_ID,
    CALL_TYPE,
    ARGUMENTS,
    CALL_NAME,
    UNANSWERED,
    STRAY,
    DOUBLE_ID,
    TWICE,
    FUNCTION,
    UNKNOWN,
    TOOLS,
    SCHEMA,
    CHOICE,
];
