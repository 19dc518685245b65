//! The names of the rules of Anthropic Messages, each with its source.
//!
//! *Reference* means Anthropic's reference of "Create a Message" and the types of its SDKs, which are generated
//! from the same description. Guides are referred to by title. Quotes are error messages of the API.

// Reference: all three are required. `max_tokens: 0` warms the cache without an answer. "There is a limit of
// 100,000 messages in a single request."
pub(super) const NO_MODEL: &str = "`model` is a string";
pub(super) const MAX_TOKENS: &str = "`max_tokens` is a number";
pub(super) const N_MESSAGES: &str = "`messages` has 1 to 100,000 entries";
// Guide "Mid-conversation system messages": after a user message or a reply that ends with a server tool; at the
// end or before a reply; never two in a row; never the first.
pub(super) const ROLE: &str = "a role is user or assistant, or system between a user message and a reply";
// "messages: first message must use the "user" role".
pub(super) const FIRST: &str = "the first message is from the user";
// "messages.3: all messages must have non-empty content except for the optional final assistant message".
pub(super) const EMPTY: &str = "a message has non-empty content";
// "messages: text content blocks must be non-empty"; "text content blocks must contain non-whitespace text".
pub(super) const EMPTY_TEXT: &str = "a text has more than whitespace";
// "messages: final assistant content cannot end with trailing whitespace".
pub(super) const TRAILING: &str = "a final assistant message does not end in whitespace";
// Reference: `ContentBlockParam`. "Input tag 'x' found using 'type' does not match any of the expected tags".
pub(super) const TYPE: &str = "a block has a known type";
// "messages.2: `tool_use` blocks can only be specified in `assistant` messages".
pub(super) const PLACE: &str = "a block has a type that the role of its message allows";
// "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'".
pub(super) const TOOL_ID: &str = "a call id has only letters, digits, `_` and `-`";
// "messages.1.content.1: `tool_use` ids must be unique".
pub(super) const DOUBLE_ID: &str = "calls have different ids";
// "tool_use.name: String should have at most 200 characters".
pub(super) const CALL_NAME: &str = "the name of a called tool has at most 200 letters, digits, `_` and `-`";
// "tool_use.input: Input should be a valid dictionary".
pub(super) const INPUT: &str = "the input of a call is an object";
// "`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each `tool_use` block must
// have a corresponding `tool_result` block in the next message." The provider joins adjacent messages of the same
// role, but a request should not depend on that.
pub(super) const UNANSWERED: &str = "every call has a result in the next message";
// "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have a
// corresponding `tool_use` block in the previous message."
pub(super) const STRAY: &str = "a result belongs to a call of the previous message";
// "each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_1".
pub(super) const TWICE: &str = "a call has one result";
// Guide "Handle tool calls": in the user message, results come first and text after them.
pub(super) const NOT_FIRST: &str = "results are the first blocks of a message";
// Reference: `ToolResultBlockParam.content`.
pub(super) const RESULT: &str = "a result is a text or a list of texts, images and documents";
// "all content must be type "text" if "is_error" is true".
pub(super) const ERROR_TEXT: &str = "an error result has only texts";
// Reference: `ThinkingBlockParam` and `RedactedThinkingBlockParam`. Changed blocks ("blocks in the latest
// assistant message cannot be modified") are not visible in a single request; `find_regression` checks them.
pub(super) const SIGNATURE: &str = "a thinking block has a text and a signature, or redacted data";
// "messages.1: The final block in an assistant message cannot be `thinking`".
pub(super) const LAST_THOUGHT: &str = "a thinking block is not the last block of a message";
// "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final
// `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result`
// blocks)".
pub(super) const THOUGHT_FIRST: &str =
    "with thinking enabled, a final reply or one with just answered calls begins with a thinking block";
// Reference: `ThinkingConfigEnabledParam`, "≥1024 and less than `max_tokens`"; interleaved thinking, which a
// header enables, may have more.
pub(super) const BUDGET: &str = "the thinking budget is at least 1024 and less than `max_tokens`";
// "Thinking may not be enabled when tool_choice forces tool use".
pub(super) const FORCED: &str = "with thinking enabled, no tool is forced";
// "`web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block".
pub(super) const SERVER_PAIR: &str = "a server tool call has its result after it in the same message";
// "unexpected `tool_use_id` found in `advisor_tool_result` blocks: srvtoolu_1. Each `advisor_tool_result` block
// must have a corresponding `server_tool_use` block before it."
pub(super) const SERVER_STRAY: &str = "a server tool result has its call before it";
// Reference: `ImageBlockParam.source`, `DocumentBlockParam.source`.
pub(super) const SOURCE: &str =
    "an image or a document has a source: data of a supported media type, a URL or a file";
// Guide "Prompt caching". "A maximum of 4 blocks with cache_control may be provided. Found 5."
pub(super) const N_MARKS: &str = "there are at most 4 cache markers in tools, system and messages together";
// Reference: `CacheControlEphemeralParam`.
pub(super) const MARK: &str = "a cache marker is ephemeral with a ttl of 5m or 1h";
// "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are
// processed in the following order: tools, system, messages."
pub(super) const MARK_ORDER: &str = "cache markers with a ttl of 1h come before those with 5m";
// "thinking.cache_control: Extra inputs are not permitted"; "cache_control cannot be set for empty text blocks".
pub(super) const MARKED: &str = "thinking blocks and empty texts have no cache marker";
// "messages.4.content.0.text.mood: Extra inputs are not permitted".
pub(super) const UNKNOWN: &str = "blocks and messages have no unknown fields";
// Reference: `system`.
pub(super) const SYSTEM: &str = "`system` is a string or a list of texts";
// "tools: Tool names must be unique."; "tools.18.custom.name: String should have at most 128 characters".
pub(super) const TOOLS: &str =
    "tools have different names of at most 128 letters, digits, `_` and `-`, and an object schema";
// "tools.9.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level".
pub(super) const SCHEMA: &str = "a tool schema has no `oneOf`, `allOf` or `anyOf` at the top level";
// "Requests which include `tool_use` or `tool_result` blocks must define tools".
pub(super) const NO_TOOLS: &str = "a request with calls or results defines tools";

pub(in crate::contracts::api_rules) const RULES: &[&str] = &[
    NO_MODEL,
    MAX_TOKENS,
    N_MESSAGES,
    ROLE,
    FIRST,
    EMPTY,
    EMPTY_TEXT,
    TRAILING,
    TYPE,
    PLACE,
    TOOL_ID,
    DOUBLE_ID,
    CALL_NAME,
    INPUT,
    UNANSWERED,
    STRAY,
    TWICE,
    NOT_FIRST,
    RESULT,
    ERROR_TEXT,
    SIGNATURE,
    LAST_THOUGHT,
    THOUGHT_FIRST,
    BUDGET,
    FORCED,
    SERVER_PAIR,
    SERVER_STRAY,
    SOURCE,
    N_MARKS,
    MARK,
    MARK_ORDER,
    MARKED,
    UNKNOWN,
    SYSTEM,
    TOOLS,
    SCHEMA,
    NO_TOOLS,
];
