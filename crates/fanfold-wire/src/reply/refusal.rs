//! Recognises refusals of requests that are too long.
//!
//! Providers report them with different statuses and phrases, and some without any text. The limit and the counted size
//! are read if the text has them. Similar errors (rate limits, quotas, image sizes) are not refusals for length.

use crate::json::{self, Object};
use crate::reply::error_text::{normalised_text, number_after, number_before};

/// A provider refused a request because it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Refusal {
    /// The part that was too long.
    pub cause: Cause,
    /// The provider's limit in tokens.
    pub limit: Option<u64>,
    /// The tokens that it counted in the prompt.
    pub size: Option<u64>,
    /// The output tokens that it added to them.
    pub output: Option<u64>,
}

impl Refusal {
    /// Returns whether the error has no text, so that it may have another cause.
    pub fn is_guess(&self) -> bool {
        self.cause == Cause::Unknown
    }

    /// The counted size of the prompt alone. Unknown if the size may include the output.
    pub fn prompt_size(&self) -> Option<u64> {
        self.size.filter(|_| self.cause != Cause::Total || self.output.is_some())
    }

    /// The room for a prompt that requests the same output, if the error has a limit.
    ///
    /// Fold into this instead of the limit: if the output counts, the prompt alone often fits the limit.
    pub fn room(&self) -> Option<u64> {
        let limit = self.limit.filter(|_| self.cause != Cause::Body)?;
        let left = limit.saturating_sub(self.output.unwrap_or(0));
        Some(if left > 0 { left } else { limit })
    }
}

/// The part of a request that was too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    /// The prompt.
    Prompt,
    /// The prompt together with the requested output.
    Total,
    /// The body: its bytes, one of its strings, or its number of messages. Has no limit in tokens.
    Body,
    /// The error does not say.
    #[default]
    Unknown,
}

/// A request exceeds the model's output limit. A shorter prompt does not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMuchOutput {
    /// The model's output limit in tokens.
    pub limit: Option<u64>,
}

/// The size of a request by fanfold's own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptFill {
    tokens: u64,
    /// Of the model's window, if it is known.
    percent: u64,
}

impl PromptFill {
    /// An unknown size.
    pub const UNKNOWN: PromptFill = PromptFill { tokens: 0, percent: 0 };
    /// The whole window.
    pub const FULL: PromptFill = PromptFill { tokens: u64::MAX, percent: 100 };

    /// A number of tokens in a window.
    pub fn new(tokens: u64, window: u64) -> PromptFill {
        PromptFill { tokens, percent: tokens.saturating_mul(100) / window.max(1) }
    }

    /// Returns whether a status 400 without text may be a refusal for length. The window of the model table does
    /// not decide alone, because providers with smaller windows send such errors.
    fn may_be_too_long(self) -> bool {
        self.tokens >= LONG || self.percent >= NEARLY_FULL
    }
}

/// Some providers refuse requests from this number of tokens.
const LONG: u64 = 8_000;
/// Requests from this percentage of a known window may be too long.
const NEARLY_FULL: u64 = 75;

/// Statuses of refusals for length. Some servers send errors with status 500 or 200.
const STATUSES: &[u16] = &[200, 400, 413, 422, 500, 502, 503];

/// Reads an error reply as a refusal for length, if it is one.
///
/// The size of the request decides if the reply has no text.
pub fn refusal(status: u16, body: &[u8], fill: PromptFill) -> Option<Refusal> {
    let words = normalised_text(body);
    let is_without_text =
        words.is_empty() || matches!(&*words, "bad request" | "status 400" | "400 bad request");
    match status {
        413 if is_without_text => Some(Refusal { cause: Cause::Body, ..Refusal::default() }),
        400 if is_without_text => fill.may_be_too_long().then(Refusal::default),
        429 => long_context_tier(&words).or_else(|| exceeded_rate_limit(&words)),
        413 => exceeded_rate_limit(&words).or_else(|| find_refusal(&words)).or_else(|| {
            let is_other = NOT_LENGTH.iter().any(|phrase| words.contains(phrase));
            (!is_other).then_some(Refusal { cause: Cause::Body, ..Refusal::default() })
        }),
        status if STATUSES.contains(&status) => find_refusal(&words),
        _ => None,
    }
}

/// Reads a reply with status 200 as a refusal for length, if it has an error instead of content.
pub fn refusal_in_reply(body: &[u8]) -> Option<Refusal> {
    let object = std::str::from_utf8(body).ok().and_then(Object::parse)?;
    let has_items = |key: &str| object.some(key).and_then(json::array).is_some_and(|all| !all.is_empty());
    let has_content = ["choices", "content", "output"].into_iter().any(has_items);
    let is_error = object.some("error").is_some() || object.text("type").as_deref() == Some("error");
    if has_content && !is_error {
        return None;
    }
    find_refusal_of_any_kind(&normalised_text(body))
}

/// Reads the JSON of an error in a stream, which has no status, as a refusal for length.
pub(crate) fn refusal_in_error(error: &str) -> Option<Refusal> {
    find_refusal_of_any_kind(&normalised_text(error.as_bytes()))
}

fn find_refusal_of_any_kind(words: &str) -> Option<Refusal> {
    long_context_tier(words).or_else(|| exceeded_rate_limit(words)).or_else(|| find_refusal(words))
}

/// Reads an error reply as a refusal of the requested output, if it is one.
pub fn too_much_output(status: u16, body: &[u8]) -> Option<TooMuchOutput> {
    let is_refusal = matches!(status, 400 | 422);
    if is_refusal { find_output_refusal(&normalised_text(body)) } else { None }
}

/// Phrases of refusals for length. A text matches if it has all parts of a phrase in order.
const TOO_LONG: &[(&[&str], Cause)] = &[
    (&["input length and max_tokens exceed context limit"], Cause::Total),
    (&["inputs tokens + max_new_tokens must be"], Cause::Total),
    (&["exceeded this model context window limit"], Cause::Total),
    (&["is too large", "maximum context length is", "your request has"], Cause::Total),
    (&["prompt is too long"], Cause::Prompt),
    (&["prompt too long"], Cause::Prompt),
    (&["input is too long"], Cause::Prompt),
    (&["too long to fit into the model"], Cause::Prompt),
    (&["longer than the model's context length"], Cause::Prompt),
    (&["longer than the maximum model length"], Cause::Prompt),
    (&["maximum context length"], Cause::Prompt),
    (&["maximum context limit"], Cause::Prompt),
    (&["maximum prompt length is"], Cause::Prompt),
    (&["max context length"], Cause::Prompt),
    (&["greater than the context length"], Cause::Prompt),
    (&["model is loaded with context length"], Cause::Prompt),
    (&["exceed", "the context length"], Cause::Prompt),
    (&["exceed", "context window"], Cause::Prompt),
    (&["context window", "exceed"], Cause::Prompt),
    (&["context_window_exceeded"], Cause::Prompt),
    (&["context_length_exceeded"], Cause::Prompt),
    (&["context length exceeded"], Cause::Prompt),
    (&["contextwindowexceedederror"], Cause::Prompt),
    (&["exceed_context_size"], Cause::Prompt),
    (&["exceeds the available context size"], Cause::Prompt),
    (&["exceed context limit"], Cause::Prompt),
    (&["exceed the configured limit of"], Cause::Prompt),
    (&["prompt token count of", "exceeds the limit of"], Cause::Prompt),
    (&["model_max_prompt_tokens_exceeded"], Cause::Prompt),
    (&["input token count", "exceeds the maximum"], Cause::Prompt),
    (&["input token count is", "only supports up to"], Cause::Prompt),
    (&["exceeded model token limit"], Cause::Prompt),
    (&["exceeds the maximum allowed length"], Cause::Prompt),
    (&["exceeds maximum input length"], Cause::Prompt),
    (&["exceeds the maximum length"], Cause::Prompt),
    (&["exceeds maximum sequence length"], Cause::Prompt),
    (&["exceeds max length"], Cause::Prompt),
    (&["but the configured context size is"], Cause::Prompt),
    (&["range of input length should be"], Cause::Prompt),
    (&["inputs must have less than"], Cause::Prompt),
    (&["must be less than max_seq_len"], Cause::Prompt),
    (&["should not exceed max_num_tokens"], Cause::Prompt),
    (&["exceed max message tokens"], Cause::Prompt),
    (&["max_tokens must be at least 1, got -"], Cause::Prompt),
    (&["too many tokens"], Cause::Prompt),
    (&["token limit exceeded"], Cause::Prompt),
    (&["exceeds token limit"], Cause::Prompt),
    (&["reduce the length of the messages"], Cause::Prompt),
    (&["reduce the length of the input"], Cause::Prompt),
    (&["status_code: 1039"], Cause::Prompt),
    (&["request body too large for", "max size:", "tokens"], Cause::Prompt),
    (&["expected maxlength:", "actual:"], Cause::Body),
    (&["content'", "string too long"], Cause::Body),
    (&["output'", "string too long"], Cause::Body),
    (&["'messages'", "array too long"], Cause::Body),
    (&["'input'", "array too long"], Cause::Body),
    (&["request_too_large"], Cause::Body),
    (&["request entity too large"], Cause::Body),
    (&["request body too large"], Cause::Body),
    (&["payload too large"], Cause::Body),
];

/// Phrases of errors that resemble refusals for length.
const NOT_LENGTH: &[&str] = &[
    "tokens per min",
    "tokens per day",
    "(tpm)",
    "rate limit",
    "rate_limit",
    "ratelimit",
    "throttl",
    "quota",
    "credits",
    "billing",
    "before trying again",
    "image exceeds",
    "image size",
    "image dimensions",
    "images exceed",
    "too many images",
    "pdf pages",
    "audio",
    "invalid 'tools",
];

fn find_refusal(words: &str) -> Option<Refusal> {
    let is_other = NOT_LENGTH.iter().any(|phrase| words.contains(phrase));
    if is_other || find_output_refusal(words).is_some() {
        return None;
    }
    let (_, cause) = TOO_LONG.iter().find(|(phrase, _)| matches_phrase(words, phrase))?;
    match cause {
        Cause::Prompt | Cause::Total => Some(refusal_with_sizes(words, *cause)),
        Cause::Body | Cause::Unknown => Some(Refusal { cause: *cause, ..Refusal::default() }),
    }
}

fn matches_phrase(words: &str, phrase: &[&str]) -> bool {
    let mut rest = Some(words);
    for part in phrase {
        rest = rest.and_then(|rest| rest.split_once(part)).map(|(_, rest)| rest);
    }
    rest.is_some()
}

/// Anthropic's refusal of a prompt beyond its standard tier. The limit is documented, and not in the error.
fn long_context_tier(words: &str) -> Option<Refusal> {
    let is_tier = words.contains("extra usage is required for long context");
    is_tier.then_some(Refusal { cause: Cause::Prompt, limit: Some(200_000), ..Refusal::default() })
}

/// A rate limit that a single request exceeds: a refusal for length, because a retry would fail too. If other requests
/// of the same minute count, a retry helps.
fn exceeded_rate_limit(words: &str) -> Option<Refusal> {
    let (_, rest) = words.split_once("request too large for")?;
    let is_shared = rest.contains(", used");
    let limit = number_after(rest, ": limit").filter(|_| !is_shared)?;
    let size = number_after(rest, ", requested").filter(|size| *size > limit)?;
    Some(Refusal { cause: Cause::Total, limit: Some(limit), size: Some(size), output: None })
}

fn find_output_refusal(words: &str) -> Option<TooMuchOutput> {
    // vLLM has the same phrase for a prompt that leaves too little room.
    if words.contains("maximum context length") {
        return None;
    }
    let known = [
        "supports at most",
        "valid range of max_tokens is [1,",
        "range of max_tokens should be [1,",
        "max_tokens must be less than or equal to",
        "max_tokens should be less than or equal to",
        "max_completion_tokens must be less than or equal to",
        "integer above maximum value, expected a value <=",
    ];
    let is_known = known.iter().any(|phrase| words.contains(phrase)) && words.contains("tokens");
    let is_anthropic = words.contains("maximum allowed number of output tokens");
    let is_google = words.contains("maxoutputtokens") && words.contains("supported range");
    if is_anthropic {
        return Some(TooMuchOutput {
            limit: words.split_once('>').and_then(|(_, rest)| number_after(rest, " ")),
        });
    }
    let limit = known.iter().find_map(|phrase| number_after(words, phrase));
    (is_known || is_google).then_some(TooMuchOutput { limit })
}

/// Phrases before a limit.
const LIMITS: &[&str] = &[
    "maximum context length is",
    "maximum context length of",
    "maximum context length:",
    "maximum context limit of",
    "maximum prompt length is",
    "too large for model with",
    "configured limit of",
    "exceeds the limit of",
    "model token limit:",
    "context length of only",
    "model's context length",
    "context length of",
    "(context length",
    "context window limit",
    "context window of",
    "maximum model length of",
    "maximum allowed length",
    "exceeds the maximum length",
    "maximum sequence length",
    "max size:",
    "configured context size is",
    "maximum input length",
    "maximum number of tokens allowed",
    "only supports up to",
    "length should be [1,",
    "must be <=",
    "must have less than",
    "cannot exceed",
    "max input length is",
    "while limit is",
    "max_seq_len",
    "max_num_tokens",
    "n_ctx:",
    "tokens >",
];

/// Phrases before the size of a prompt.
const SIZES: &[&str] = &[
    "prompt is too long:",
    "resulted in",
    "request contains",
    "prompt token count of",
    "requested:",
    "prompt length (",
    "the input (",
    "input length (",
    "input token count (",
    "input token count is",
    "prompt contains",
    "your request has",
    "(total length",
    "(length",
    "prompt_tokens (",
    "n_prompt_tokens:",
    "n_keep:",
    "keep the first",
    "given:",
    "you supplied",
    "received",
    "requested tokens (",
    "current length is",
    "prompt too long:",
    "prompt has",
    "input length",
];

/// Reads limit and size.
fn refusal_with_sizes(words: &str, cause: Cause) -> Refusal {
    // "178959 + 64000 > 200000" is Anthropic's.
    if let Some(size) = number_after(words, "exceed context limit:") {
        let sum = words.split_once("exceed context limit:").map_or("", |(_, rest)| rest);
        let part = |mark: char| sum.split_once(mark).and_then(|(_, rest)| number_after(rest, " "));
        return Refusal { cause: Cause::Total, limit: part('>'), size: Some(size), output: part('+') };
    }
    let limit = LIMITS.iter().find_map(|phrase| number_after(words, phrase));
    let output =
        ["in the completion", "for the completion", "in the output", "output tokens", "max_new_tokens |"]
            .iter()
            .find_map(|phrase| number_before(words, phrase))
            .or_else(|| number_after(words, "is too large:"));
    let in_parts = ["in the messages", "in your prompt", "of text input", "from the input messages"]
        .iter()
        .find_map(|phrase| number_before(words, phrase));
    let in_parts = in_parts.map(|text| text + number_before(words, "of tool input").unwrap_or(0));
    let size = in_parts.or_else(|| SIZES.iter().find_map(|phrase| number_after(words, phrase)));
    let total =
        ["you requested a total of", "you requested"].iter().find_map(|phrase| number_after(words, phrase));
    let size = size.or_else(|| total.map(|total| total.saturating_sub(output.unwrap_or(0))));
    // If the output counts and the prompt alone would fit, their sum was too long.
    let is_sum =
        output.is_some_and(|output| output > 0) && size.zip(limit).is_none_or(|(size, limit)| size <= limit);
    Refusal { cause: if is_sum { Cause::Total } else { cause }, limit, size, output }
}
