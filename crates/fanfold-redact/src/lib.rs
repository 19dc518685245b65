//! Takes secrets out of text before it goes to a log, a summary or an export.
//!
//! One pass looks for short words that stand at or beside secrets; only where one stands is it looked closer. What is
//! found is replaced by a mark that says what was there:
//!
//! ```
//! let text = "curl -H 'x-api-key: 9fK2mQ7xT4vB8nL1' https://api.example.com";
//! let clean = fanfold_redact::redact(text);
//! assert_eq!(clean, "curl -H 'x-api-key: [redacted: key]' https://api.example.com");
//! ```
//!
//! A secret that nothing tells from other text (no form of its own, no name beside it) is not found. What only looks
//! like one (a name of a variable, a placeholder, a hash) stays.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod char_class; //    sets of bytes, and word boundaries
mod heuristics; //    whether a value looks like a secret or a placeholder
mod token_formats; // secrets with a recognisable format: most keys and tokens
mod private_keys; //  PEM private keys
mod url_passwords; // passwords in URLs and connection strings
mod value; //         where a value begins and ends
mod assignment; //    the value assigned to a name
mod named_secrets; // values assigned to a name such as `password`
mod auth_schemes; //  headers, cookies, command lines
mod scanner; //       all of them in one pass

use std::borrow::Cow;
use std::ops::Range;

pub use scanner::find_secrets;

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Where it stands.
    pub range: Range<usize>,
    /// What it is, in a word or two.
    pub kind: &'static str,
}

/// The text with a mark for each secret. It is the text itself if there is none.
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_within(text, 0..text.len())
}

/// A part of a text with a mark for each secret that reaches into it. What stands around the part tells what in it is secret: a line of
/// a key is known by the first one. A range that does not lie between characters is taken for the nearest that does.
pub fn redact_within(text: &str, range: Range<usize>) -> Cow<'_, str> {
    let to = text.floor_char_boundary(range.end);
    let mut end = text.ceil_char_boundary(range.start).min(to);
    let found: Vec<Secret> = find_secrets(text)
        .into_iter()
        .filter(|secret| secret.range.end > end && secret.range.start < to)
        .collect();
    if found.is_empty() {
        return Cow::Borrowed(&text[end..to]);
    }
    let mut clean = String::with_capacity(to - end);
    for secret in found {
        clean.push_str(&text[end..secret.range.start.max(end)]);
        clean.push_str("[redacted: ");
        clean.push_str(secret.kind);
        clean.push(']');
        end = secret.range.end.min(to);
    }
    clean.push_str(&text[end..to]);
    Cow::Owned(clean)
}
