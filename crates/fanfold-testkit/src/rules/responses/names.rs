//! The rules of Responses by their names, each with what it was taken from.
//!
//! *Description* means OpenAI's OpenAPI description of the API, `InputItem` and the schemas that it names. Words in
//! quotes are those of the API's refusals.

// Description: `CreateResponse`; with a conversation, a prompt or an earlier response, no input is needed.
pub(super) const NO_MODEL: &str = "`model` is a text";
pub(super) const NO_INPUT: &str = "`input` is a text or a list, and not empty";
// Description: `InputItem` and `Item`.
pub(super) const TYPE: &str = "an item is of a type that the API knows";
// Description: `EasyInputMessage` and `OutputMessage`.
pub(super) const ROLE: &str = "a role is user, assistant, system or developer";
pub(super) const NO_CONTENT: &str = "a message has a content";
// "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'".
pub(super) const PART: &str = "a part is of a type that its role may have";
pub(super) const PART_TEXT: &str = "a part of text has a text";
// Description: `maxLength: 10485760` of `InputTextContentParam.text` and `FunctionCallOutputItemParam.output`.
pub(super) const LONG: &str = "a text has at most 10,485,760 letters";
// "Invalid 'input[2].id': ''. Expected an ID that contains letters, numbers, underscores, or dashes";
// "Expected an ID that begins with 'fc'", and 'msg', 'rs' and 'ctc' for the others.
pub(super) const ID: &str =
    "an id is of letters, digits, `_` and `-`, begins as its type wants it, and has at most 64 of them";
// "Duplicate item found with id".
pub(super) const DOUBLE_ID: &str = "no two items have one id";
// Description: `call_id` has `minLength: 1` and `maxLength: 64`.
pub(super) const CALL_ID: &str = "a call has a `call_id` of at most 64 letters";
// Description: `FunctionToolParam.name` has `maxLength: 128` and the pattern `^[a-zA-Z0-9_-]+$`.
pub(super) const CALL_NAME: &str = "a called tool has a name of at most 128 letters, digits, `_` and `-`";
// Description: `FunctionToolCall.arguments`, `CustomToolCall.input`, `FunctionCallOutputItemParam.output`.
pub(super) const ARGUMENTS: &str = "arguments and inputs are texts";
pub(super) const OUTPUT: &str = "an output is a text or a list of parts";
// "No tool output found for function call call_1".
pub(super) const NO_OUTPUT: &str = "every call has its output";
// "No tool call found for function call output with call_id call_1".
pub(super) const STRAY: &str = "an output has its call before it, of its own kind";
// Written down nowhere: that a call and its output are one pair follows from the two rules above, and nothing that is
// sent should rest on more than they say.
pub(super) const TWICE: &str = "a call is answered once";
pub(super) const DOUBLE_CALL: &str = "calls have different `call_id`s";
// Description: `ReasoningItem` requires it. The `id` that it requires, too, is left out by clients that do not store.
pub(super) const SUMMARY: &str = "a thought has its summary";
// "Item 'rs_1' of type 'reasoning' was provided without its required following item". The other way round ("'msg_1' was
// provided without its required 'reasoning' item") can't be seen in one request: that is `worse`.
pub(super) const LONE_THOUGHT: &str = "a thought is followed by its item";
// "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false".
pub(super) const NOT_STORED: &str = "with `store: false` a thought comes with its sealed content";
pub(super) const REFERENCE: &str =
    "with `store: false` nothing is named that the provider would have to keep";
// "Unknown parameter: 'input[4].mood'".
pub(super) const UNKNOWN: &str = "an item has no fields that the API does not know";
// Description: `FunctionToolParam`; `parameters` may be null or left out.
// "Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"'".
pub(super) const TOOLS: &str = "functions have different names of at most 128 letters, digits, `_` and `-`";
pub(super) const SCHEMA: &str = "the parameters of a function are a schema of an object";

pub(in crate::rules) const RULES: &[&str] = &[
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
