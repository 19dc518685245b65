//! The names of the rules of Responses, each with its source.
//!
//! *Description* means OpenAI's OpenAPI description of the API: `InputItem` and the schemas it refers to. Quotes
//! are error messages of the API.

// Description: `CreateResponse`; with a conversation, a prompt or an earlier response, no input is needed.
pub(super) const NO_MODEL: &str = "`model` is a string";
pub(super) const NO_INPUT: &str = "`input` is a non-empty string or list";
// Description: `InputItem` and `Item`.
pub(super) const TYPE: &str = "an item has a known type";
// Description: `EasyInputMessage` and `OutputMessage`.
pub(super) const ROLE: &str = "a role is user, assistant, system or developer";
pub(super) const NO_CONTENT: &str = "a message has content";
// "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'".
pub(super) const PART: &str = "a part has a type that its role allows";
pub(super) const PART_TEXT: &str = "a text part has a text";
// Description: `maxLength: 10485760` of `InputTextContentParam.text` and `FunctionCallOutputItemParam.output`.
pub(super) const LONG: &str = "a text has at most 10,485,760 characters";
// "Invalid 'input[2].id': ''. Expected an ID that contains letters, numbers, underscores, or dashes";
// "Expected an ID that begins with 'fc'", and 'msg', 'rs' and 'ctc' for the others.
pub(super) const ID: &str = "an id has at most 64 letters, digits, `_` and `-`, and the prefix of its type";
// "Duplicate item found with id".
pub(super) const DOUBLE_ID: &str = "items have different ids";
// Description: `call_id` has `minLength: 1` and `maxLength: 64`.
pub(super) const CALL_ID: &str = "a `call_id` has 1 to 64 characters";
// Description: `FunctionToolParam.name` has `maxLength: 128` and the pattern `^[a-zA-Z0-9_-]+$`.
pub(super) const CALL_NAME: &str = "the name of a called tool has at most 128 letters, digits, `_` and `-`";
// Description: `FunctionToolCall.arguments`, `CustomToolCall.input`, `FunctionCallOutputItemParam.output`.
pub(super) const ARGUMENTS: &str = "arguments and inputs are strings";
pub(super) const OUTPUT: &str = "an output is a string or a list of parts";
// "No tool output found for function call call_1".
pub(super) const NO_OUTPUT: &str = "every call has an output";
// "No tool call found for function call output with call_id call_1".
pub(super) const STRAY: &str = "an output follows a call of its type";
// Not documented, but it follows from the two rules above, and a request should not depend on more than they allow.
pub(super) const TWICE: &str = "a call has one result";
pub(super) const DOUBLE_CALL: &str = "calls have different `call_id`s";
// Description: `ReasoningItem` requires it. It also requires `id`, which clients with `store: false` omit.
pub(super) const SUMMARY: &str = "a reasoning item has a summary";
// "Item 'rs_1' of type 'reasoning' was provided without its required following item". The opposite ("'msg_1' was
// provided without its required 'reasoning' item") is not visible in a single request; `find_regression` checks it.
pub(super) const LONE_THOUGHT: &str = "a reasoning item is followed by the item that it belongs to";
// "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false".
pub(super) const NOT_STORED: &str = "with `store: false`, a reasoning item has its encrypted content";
pub(super) const REFERENCE: &str = "with `store: false`, nothing refers to stored items";
// "Unknown parameter: 'input[4].mood'".
pub(super) const UNKNOWN: &str = "an item has no unknown fields";
// Description: `FunctionToolParam`; `parameters` may be null or left out.
// "Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"'".
pub(super) const TOOLS: &str = "functions have different names of at most 128 letters, digits, `_` and `-`";
pub(super) const SCHEMA: &str = "the parameters of a function are an object schema";

pub(in crate::contracts::api_rules) const RULES: &[&str] = &[
    NO_MODEL,
    NO_INPUT,
    TYPE,
    ROLE,
    NO_CONTENT,
    PART,
    PART_TEXT,
    LONG,
    ID,
    DOUBLE_ID,
    CALL_ID,
    CALL_NAME,
    ARGUMENTS,
    OUTPUT,
    NO_OUTPUT,
    STRAY,
    TWICE,
    DOUBLE_CALL,
    SUMMARY,
    LONE_THOUGHT,
    NOT_STORED,
    REFERENCE,
    UNKNOWN,
    TOOLS,
    SCHEMA,
];
