//! The rules of Chat Completions by their names, each with what it was taken from.
//!
//! *Description* means OpenAI's OpenAPI description of the API, `CreateChatCompletionRequest` and the schemas that it
//! names. Words in quotes are those of the API's refusals.

// Description: both are required, and `messages` has `minItems: 1`.
pub(super) const NO_MODEL: &str = "`model` is a text";
pub(super) const NO_MESSAGES: &str = "`messages` is a list that is not empty";
// Description: `ChatCompletionRequestMessage`, one schema for each role.
pub(super) const ROLE: &str = "a role is developer, system, user, assistant, tool or function";
// Description: "Required unless `tool_calls` or `function_call` is specified", and a function's may be null.
// "Invalid value for 'content': expected a string, got null".
pub(super) const NO_CONTENT: &str =
    "a message has a content; a function's may be null, and an assistant's when it calls a tool";
// Description: `minItems: 1` wherever a content is a list, and the parts that each role has.
pub(super) const EMPTY_PARTS: &str = "a list of parts is not empty";
pub(super) const PART: &str = "a part is of a type that its role may have";
pub(super) const PART_TEXT: &str = "a part of text has a text";
// Description: the assistant's content is "one or more of type `text`, or exactly one of type `refusal`".
pub(super) const REFUSED: &str = "an assistant's parts are texts, or one refusal alone";
// Description: `image_url.url` is a URL or base64 data, of the format `uri`.
pub(super) const IMAGE: &str = "an image has the address of a picture or its data";
// "Invalid 'messages[0].name': string does not match pattern", which is `^[^\s<|\\/>]+$`; "maximum length 64".
pub(super) const NAME: &str = "a name has no spaces, `<`, `|`, `\\`, `/` or `>`, and at most 64 letters";
// Description: `tool_calls` is a field of the assistant's message alone.
pub(super) const CALLS_ROLE: &str = "only an assistant calls tools";
// "[] is too short - 'messages.1.tool_calls'"; "array too long. Expected an array with maximum length 128".
pub(super) const N_CALLS: &str = "a list of calls has 1 to 128 of them";
// "Invalid 'messages[10].tool_calls[0].id': string too long", with a maximum of 40.
pub(super) const CALL_ID: &str = "a call has an id of at most 40 letters";
// Description: `ChatCompletionMessageToolCall` and `ChatCompletionMessageCustomToolCall`.
pub(super) const CALL_TYPE: &str = "a call is of a function or of a custom tool";
pub(super) const ARGUMENTS: &str = "arguments are a text";
// "string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'", with a maximum of 64.
pub(super) const CALL_NAME: &str = "a called tool has a name of at most 64 letters, digits, `_` and `-`";
// "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'".
pub(super) const UNANSWERED: &str = "every call is answered by a tool message right behind it";
// "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'".
pub(super) const STRAY: &str = "a tool message answers a call of the assistant message before it";
// Written down nowhere: that each call has its own answer follows from the two rules above, and nothing that is sent
// should rest on more than they say.
pub(super) const DOUBLE_ID: &str = "calls of one message have different ids";
pub(super) const TWICE: &str = "a call is answered once";
// Description: `ChatCompletionRequestFunctionMessage` requires it.
pub(super) const FUNCTION: &str = "a function message has the function's name";
// "Additional properties are not allowed ('mood' was unexpected) - 'messages.1'".
pub(super) const UNKNOWN: &str = "a message has no fields that the API does not know";
// Description: `FunctionObject.name`. "Invalid 'tools': array too long. Expected an array with maximum length 128".
pub(super) const TOOLS: &str =
    "tools have different names of at most 64 letters, digits, `_` and `-`, and are at most 128";
// "Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"'"; it may be left out.
pub(super) const SCHEMA: &str = "the parameters of a function are a schema of an object";
// "'tool_choice' is only allowed when 'tools' are specified".
pub(super) const CHOICE: &str = "`tool_choice` and `parallel_tool_calls` come with tools";

pub(in crate::rules) const RULES: &[&str] = &[
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
