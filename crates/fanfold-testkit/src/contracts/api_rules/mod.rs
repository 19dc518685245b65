//! Checks a request by the documented rules of its API and reports each violation with its position.
//!
//! The rules come from the documentation and the error messages of the providers, not from our encoder. For each
//! rule, a test has a body that breaks only this rule and a similar body that keeps it.

mod findings; //  collects violations; accessors of JSON values
mod chat; //      OpenAI Chat Completions
mod responses; // OpenAI Responses
mod anthropic; // Anthropic Messages
mod compare; //   compares a request before and after folding

use std::fmt;

use serde_json::Value;

use crate::generators::bodies::BodyFormat;
pub use compare::{find_regression, missing_user_text, user_texts};
use findings::Findings;

/// A broken rule, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The name of the rule.
    pub rule: &'static str,
    /// The position in the notation of providers: `messages[3].content[1]`.
    pub position: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.position, self.rule)
    }
}

/// All rules that a request body breaks.
pub fn violations(kind: BodyFormat, body: &[u8]) -> Vec<Violation> {
    let mut findings = Findings::default();
    match serde_json::from_slice::<Value>(body) {
        Ok(body) if body.is_object() => match kind {
            BodyFormat::Anthropic => anthropic::check(&body, &mut findings),
            BodyFormat::Responses => responses::check(&body, &mut findings),
            BodyFormat::Chat | BodyFormat::Hermes | BodyFormat::ShareGpt => chat::check(&body, &mut findings),
        },
        _ => findings.report(NOT_AN_OBJECT, "the body"),
    }
    findings.violations
}

/// The names of the rules of an API.
pub fn rules(kind: BodyFormat) -> &'static [&'static str] {
    match kind {
        BodyFormat::Anthropic => anthropic::RULES,
        BodyFormat::Responses => responses::RULES,
        BodyFormat::Chat | BodyFormat::Hermes | BodyFormat::ShareGpt => chat::RULES,
    }
}

const NOT_AN_OBJECT: &str = "a request is a JSON object";
