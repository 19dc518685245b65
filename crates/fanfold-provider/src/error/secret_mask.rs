//! Words without secrets in them, for errors that people read.

use crate::error::{ProviderError, single_line};

/// So much of a text is looked at; no more than a line of it is ever shown.
const MAX_CHARS_SCANNED: usize = 4000;
/// So many letters at one end of a key are enough to take out what holds them: providers echo keys in part.
const MIN_PARTIAL_CHARS: usize = 8;
const MARK: &str = "[key]";

/// The secrets of one request, which are taken out of all that is said about it.
#[derive(Clone, Default)]
pub(crate) struct SecretMask {
    secrets: Vec<String>,
}

impl SecretMask {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> SecretMask {
        SecretMask { secrets: secrets.into_iter().filter(|secret| !secret.is_empty()).collect() }
    }

    /// A text on one line, without the secrets and without what looks like one.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut text: String = text.chars().take(MAX_CHARS_SCANNED).collect();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), MARK);
            text = mask_partial(&text, secret);
        }
        single_line(&fanfold_redact::redact(&text))
    }

    /// A fault whose words have no secrets in them.
    pub(crate) fn mask_error(&self, fault: ProviderError) -> ProviderError {
        ProviderError { message: self.mask(&fault.message), ..fault }
    }
}

/// A text without the words that hold one end of a secret.
fn mask_partial(text: &str, secret: &str) -> String {
    let letters: Vec<char> = secret.chars().collect();
    if letters.len() < MIN_PARTIAL_CHARS * 2 {
        return text.to_owned();
    }
    let head: String = letters[..MIN_PARTIAL_CHARS].iter().collect();
    let tail: String = letters[letters.len() - MIN_PARTIAL_CHARS..].iter().collect();
    let is_telling = |word: &str| word.contains(&head) || word.contains(&tail);
    let words = text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    words
        .map(|word| match is_telling(word) {
            true => {
                let end = word.chars().last().filter(|c| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
                end.map_or(MARK.to_owned(), |end| format!("{MARK}{end}"))
            }
            false => word.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_out_whole_and_in_part() {
        let key = ["made", "up", "0123456789", "abcdefghij"].join("-");
        let veil = SecretMask::new([key.clone()]);
        let said = format!("Incorrect key: {key}. Or '{}*****'? Or {}!", &key[..10], &key[key.len() - 9..]);
        let shown = veil.mask(&said);
        assert_eq!(shown, "Incorrect key: [key]. Or '[key]'? Or [key]");
        assert_eq!(SecretMask::default().mask("two\n words"), "two words");
    }

    #[test]
    fn what_looks_like_a_secret_goes_too() {
        let token = format!("{}_{}", "ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        assert!(!SecretMask::default().mask(&format!("use {token} for it")).contains(&token));
    }
}
