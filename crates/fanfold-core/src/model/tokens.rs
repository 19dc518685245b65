//! Token counts, and the trait of token counters.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A number of tokens. Subtraction saturates at zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens(pub u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Tokens = Tokens(0);

    /// This many per mille of the tokens, rounded down.
    pub fn permille(self, share: u32) -> Tokens {
        Tokens((u128::from(self.0) * u128::from(share) / 1000) as u64)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&thousands(self.0))
    }
}

impl Add for Tokens {
    type Output = Tokens;
    fn add(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Tokens) {
        *self = *self + other;
    }
}

impl Sub for Tokens {
    type Output = Tokens;
    fn sub(self, other: Tokens) -> Tokens {
        Tokens(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Tokens {
    fn sub_assign(&mut self, other: Tokens) {
        *self = *self - other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Tokens>>(tokens: I) -> Tokens {
        tokens.fold(Tokens::ZERO, Add::add)
    }
}

/// A number with commas between its thousands.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.char_indices() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The tokens that a provider adds around texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameCosts {
    /// The role and the separators of a message.
    pub message: Tokens,
    /// The frame and the id of a tool call.
    pub call: Tokens,
    /// An image or a file.
    pub media: Tokens,
}

/// Counts tokens for one family of models.
pub trait Count: Send + Sync {
    /// The tokens of a text without any frame.
    fn count(&self, text: &str) -> Tokens;

    /// The costs of messages, calls and media in addition to their text.
    fn frame(&self) -> FrameCosts {
        FrameCosts { message: Tokens(4), call: Tokens(8), media: Tokens(1_500) }
    }

    /// Returns whether the count of a text is the sum of the counts of its parts, if it is cut after line ends that
    /// are followed by optional blanks and a visible character. A slash right after the line end does not qualify.
    fn is_cut_at_lines(&self) -> bool {
        false
    }

    /// The counter's name, as `inspect` prints it.
    fn name(&self) -> &str;

    /// Returns whether the counts are the provider's own rather than an estimate.
    fn is_exact(&self) -> bool;
}

/// Counts each word as one token and frames as zero, so that tests can count a budget by eye.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

impl Count for Words {
    fn count(&self, text: &str) -> Tokens {
        Tokens(text.split_whitespace().count() as u64)
    }

    fn frame(&self) -> FrameCosts {
        FrameCosts { message: Tokens::ZERO, call: Tokens::ZERO, media: Tokens(50) }
    }

    fn name(&self) -> &str {
        "words"
    }

    fn is_exact(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_groups_thousands() {
        let shown: Vec<_> = [0, 999, 1_000, 123_456, 1_234_567].map(|n| Tokens(n).to_string()).into();
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }

    #[test]
    fn subtraction_saturates() {
        assert_eq!(Tokens(3) - Tokens(5), Tokens::ZERO);
    }
}
