//! Redacts secrets in text, for logs, summaries and exports.
//!
//! One Aho-Corasick pass finds trigger words: prefixes of tokens, names of secrets and parts of URLs or commands. A
//! detector then examines the text around each trigger. Escapes are decoded and colours are removed before, and the
//! secrets are mapped back to the original text. A secret is replaced by a label of its kind:
//!
//! ```
//! let text = "curl -H 'x-api-key: 9fK2mQ7xT4vB8nL1' https://api.example.com";
//! let clean = fanfold_redact::redact(text);
//! assert_eq!(clean, "curl -H 'x-api-key: [redacted: key]' https://api.example.com");
//! ```
//!
//! A secret without a known format and without a name is not found. A variable name, a placeholder or a hash is left
//! unchanged.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod char_class; //    sets of bytes, and where a word may begin
mod lines; //         the line around an offset, and the prefixes of listings
mod heuristics; //    whether a value looks like a secret or a placeholder
mod token_formats; // secrets with a recognisable format: most keys and tokens
mod private_keys; //  PEM private keys
mod url_passwords; // passwords in URLs and connection strings
mod value; //         where a value begins and ends
mod assignment; //    the value assigned to a name
mod secret_names; //  names such as `password`
mod named_secrets; // values assigned to a name such as `password`
mod auth_schemes; //  headers, cookies, command lines
mod decoding; //      text without escapes and colours, whose ranges map back to the original
mod scanner; //       all of them in one pass over each decoded text

use std::borrow::Cow;
use std::ops::Range;

pub use scanner::find_secrets;

/// A secret found in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its position in bytes.
    pub range: Range<usize>,
    /// A label in a word or two.
    pub kind: &'static str,
}

impl Secret {
    /// The same secret in a text that contains the scanned one at an offset.
    fn shifted(self, offset: usize) -> Secret {
        Secret { range: self.range.start + offset..self.range.end + offset, kind: self.kind }
    }
}

/// Replaces each secret in a text by a label.
pub fn redact(text: &str) -> Cow<'_, str> {
    redact_within(text, 0..text.len())
}

/// A part of a text with each secret in it replaced by a label. The whole text is scanned, since a secret may only be
/// recognised by text outside of the part, such as the first line of a private key. The range is rounded to character
/// boundaries.
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
