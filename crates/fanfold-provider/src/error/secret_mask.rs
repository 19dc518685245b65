//! Masks secrets in error messages.

use crate::error::{ProviderError, single_line};

/// Number of characters scanned. Only one line is ever shown.
const MAX_CHARS_SCANNED: usize = 4000;
/// A word with this many characters of either end of a key is masked, since providers echo keys in part.
const MIN_PARTIAL_CHARS: usize = 8;
const MARK: &str = "[key]";

/// The secrets of one request, to be masked in all messages about it.
#[derive(Clone, Default)]
pub(crate) struct SecretMask {
    secrets: Vec<String>,
}

impl SecretMask {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> SecretMask {
        SecretMask { secrets: secrets.into_iter().filter(|secret| !secret.is_empty()).collect() }
    }

    /// A text on one line, without the known secrets and without text that looks like a secret.
    pub(crate) fn mask(&self, text: &str) -> String {
        let mut text: String = text.chars().take(MAX_CHARS_SCANNED).collect();
        for secret in &self.secrets {
            text = text.replace(secret.as_str(), MARK);
            text = mask_partial(&text, secret);
        }
        single_line(&fanfold_redact::redact(&text))
    }

    /// An error whose message contains no secrets.
    pub(crate) fn mask_error(&self, error: ProviderError) -> ProviderError {
        ProviderError { message: self.mask(&error.message), ..error }
    }
}

/// Masks the words of a text that contain either end of a secret.
fn mask_partial(text: &str, secret: &str) -> String {
    let chars: Vec<char> = secret.chars().collect();
    if chars.len() < MIN_PARTIAL_CHARS * 2 {
        return text.to_owned();
    }
    let head: String = chars[..MIN_PARTIAL_CHARS].iter().collect();
    let tail: String = chars[chars.len() - MIN_PARTIAL_CHARS..].iter().collect();
    let has_key_part = |word: &str| word.contains(&head) || word.contains(&tail);
    let message = text.split_inclusive(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
    message
        .map(|word| match has_key_part(word) {
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
    fn a_key_is_masked_whole_and_in_part() {
        let key = ["made", "up", "0123456789", "abcdefghij"].join("-");
        let mask = SecretMask::new([key.clone()]);
        let message =
            format!("Incorrect key: {key}. Or '{}*****'? Or {}!", &key[..10], &key[key.len() - 9..]);
        let shown = mask.mask(&message);
        assert_eq!(shown, "Incorrect key: [key]. Or '[key]'? Or [key]");
        assert_eq!(SecretMask::default().mask("two\n words"), "two words");
    }

    #[test]
    fn text_that_looks_like_a_secret_is_masked() {
        let token = format!("{}_{}", "ghp", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        assert!(!SecretMask::default().mask(&format!("use {token} for it")).contains(&token));
    }
}
