//! The documented rules of each API, for a whole request: which of them a body breaks, and where.
//!
//! They are written from what the providers document and from the words of their refusals, not from our encoder. Each
//! rule has a name; a test has a body that breaks it alone and one that just keeps it.

mod look; //      values looked at, and what is wrong with them
mod chat; //      OpenAI Chat Completions
mod responses; // OpenAI Responses
mod anthropic; // Anthropic Messages
mod compare; //   what came beside what left

use std::fmt;

use serde_json::Value;

use crate::bodies::Kind;
pub use compare::{missing_words, user_texts, worse};
use look::Look;

/// A rule that a body breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    /// The rule, by its name.
    pub rule: &'static str,
    /// Where, as providers write it: `messages[3].content[1]`.
    pub place: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.rule)
    }
}

/// Every rule that the body of a request breaks.
pub fn broken(kind: Kind, body: &[u8]) -> Vec<Broken> {
    let mut look = Look::default();
    match serde_json::from_slice::<Value>(body) {
        Ok(body) if body.is_object() => match kind {
            Kind::Anthropic => anthropic::check(&body, &mut look),
            Kind::Responses => responses::check(&body, &mut look),
            Kind::Chat | Kind::Hermes | Kind::ShareGpt => chat::check(&body, &mut look),
        },
        _ => look.breaks(NOT_AN_OBJECT, "the body"),
    }
    look.broken
}

/// The rules of an API, by their names.
pub fn rules(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Anthropic => anthropic::RULES,
        Kind::Responses => responses::RULES,
        Kind::Chat | Kind::Hermes | Kind::ShareGpt => chat::RULES,
    }
}

const NOT_AN_OBJECT: &str = "a request is an object of JSON";
