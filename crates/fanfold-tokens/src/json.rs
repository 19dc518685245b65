//! Counts with the `tokenizer.json` published with open models.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fanfold_core::{Count, Tokens};
use kitoken::Kitoken;

use crate::exact::o200k;

/// A counter that uses a `tokenizer.json`.
///
/// Special tokens in a text are plain text. Long texts are counted in parts, cut before a space
/// where possible. Nearly all vocabularies start words at spaces, so their counts stay exact;
/// others can be a token or two off at each cut.
pub struct TokenizerJson {
    name: String,
    tokenizer: Kitoken,
}

/// Why a `tokenizer.json` cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// The file is not JSON, not a tokenizer, or a kind of tokenizer that is not supported.
    #[error("cannot read the tokenizer of {name}: {reason}")]
    Unsupported {
        /// The name given for the tokenizer.
        name: String,
        /// The error message of the tokenizer library.
        reason: String,
    },
}

/// After this many bytes, a part ends before the next space.
const PART: usize = 16 * 1024;
/// A part without a space is cut at this length, because tokenizers overflow on long runs.
const LONGEST_RUN: usize = 4 * 1024;

impl TokenizerJson {
    /// Parses a `tokenizer.json`; `name` becomes the name of the counter.
    pub fn from_bytes(bytes: &[u8], name: &str) -> Result<TokenizerJson, TokenizerError> {
        let unsupported = |reason: String| TokenizerError::Unsupported { name: name.to_owned(), reason };
        let tokenizer = guarded(|| Kitoken::from_tokenizers_slice(bytes))
            .ok_or_else(|| unsupported("the tokenizer library panicked".to_owned()))?
            .map_err(|error| unsupported(error.to_string()))?;
        Ok(TokenizerJson { name: name.to_owned(), tokenizer })
    }

    /// The tokens of one part, estimated with o200k if the tokenizer fails.
    fn count_part(&self, part: &str) -> u64 {
        match guarded(|| self.tokenizer.encode(part, false)) {
            Some(Ok(tokens)) => tokens.len() as u64,
            Some(Err(_)) | None => o200k().count(part).0,
        }
    }
}

/// Calls the library; `None` if it panics, because no input may make this crate panic.
fn guarded<T>(run: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok()
}

impl Count for TokenizerJson {
    fn count(&self, text: &str) -> Tokens {
        parts(text).map(|part| Tokens(self.count_part(part))).sum()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn is_exact(&self) -> bool {
        true
    }
}

impl fmt::Debug for TokenizerJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokenizerJson").field(&self.name).finish()
    }
}

/// Cuts a text into parts short enough for a tokenizer.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (part, after) = rest.split_at(part_end(rest));
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}

fn part_end(text: &str) -> usize {
    let mut run_start = 0;
    let mut previous = ' ';
    for (at, this) in text.char_indices() {
        let is_cut = this == ' ' && !previous.is_whitespace();
        if (is_cut && at >= PART) || at - run_start >= LONGEST_RUN {
            return at;
        }
        if is_cut {
            run_start = at;
        }
        previous = this;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vocabulary of a few letters, with the word rules of GPT-4 and three merges.
    const TOKENIZER: &str = r#"{
        "version": "1.0",
        "added_tokens": [
            {"id": 9, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
             "normalized": false, "special": true}
        ],
        "normalizer": null,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
             "behavior": "Isolated", "invert": false},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
        ]},
        "post_processor": {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [9], "tokens": ["<s>"]}}},
        "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
            "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false,
            "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "<": 4, ">": 5, "s": 6, "ab": 7, "abc": 8, "Ġabc": 10},
            "merges": ["a b", "ab c", "Ġ abc"]}
    }"#;

    fn counter() -> TokenizerJson {
        TokenizerJson::from_bytes(TOKENIZER.as_bytes(), "tiny").expect("the tokenizer is well formed")
    }

    #[test]
    fn counts_follow_the_merges() {
        let counts = ["", "a", "abc", "abc abc", "cab", "abab c"].map(|text| counter().count(text).0);
        assert_eq!(counts, [0, 1, 1, 2, 2, 4]);
        assert_eq!((counter().name(), counter().is_exact()), ("tiny", true));
    }

    #[test]
    fn special_tokens_are_plain_text() {
        assert_eq!(counter().count("<s>"), Tokens(3));
    }

    #[test]
    fn letters_outside_the_vocabulary_cost_nothing() {
        assert_eq!(counter().count("xayz"), Tokens(1));
    }

    #[test]
    fn a_million_repeats_of_a_character_are_counted() {
        let counter = counter();
        for text in [" ", "a", "=", "\n", "é", "a  ", " abc"] {
            let count = counter.count(&text.repeat(1_000_000 / text.len()));
            let is_known = text.contains([' ', 'a']);
            assert_eq!(count > Tokens(200_000), is_known, "{count} in {text:?}");
        }
    }

    #[test]
    fn parts_begin_at_spaces() {
        let text = " abc".repeat(20_000);
        assert!(parts(&text).all(|part| part.starts_with(" abc") && part.len() <= PART + 4));
        assert_eq!(counter().count(&text), Tokens(20_000));
        let run = "é".repeat(20_000);
        assert_eq!(parts(&run).collect::<String>(), run);
    }

    #[test]
    fn malformed_tokenizers_are_errors() {
        for bytes in [&b""[..], b"{}", b"[1]", b"\xff", &TOKENIZER.as_bytes()[..900]] {
            let error = TokenizerJson::from_bytes(bytes, "broken").expect_err("not a tokenizer");
            assert!(error.to_string().starts_with("cannot read the tokenizer of broken: "));
        }
        let bad_regex = TOKENIZER.replace("{1,3}", "{3,1}(");
        assert!(TokenizerJson::from_bytes(bad_regex.as_bytes(), "broken").is_err());
    }
}
