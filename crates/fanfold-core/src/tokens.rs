//! What text costs: the unit, and the trait that every counter implements.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// A number of tokens. Subtraction stops at zero.
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

/// What a provider adds around the text itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The role and the separators of one message.
    pub message: Tokens,
    /// The frame and the id of one tool call.
    pub call: Tokens,
    /// One image or file.
    pub media: Tokens,
}

/// Counts tokens for one family of models.
pub trait Count: Send + Sync {
    /// The tokens of a text, without any frame.
    fn count(&self, text: &str) -> Tokens;

    /// What messages, calls and media cost beside their text.
    fn frame(&self) -> Frame {
        Frame { message: Tokens(4), call: Tokens(8), media: Tokens(1_500) }
    }

    /// Whether a text costs what its parts cost, cut behind line ends that something visible follows, or blanks and then
    /// something visible: not a line end, nor a slash right behind it.
    fn is_cut_at_lines(&self) -> bool {
        false
    }

    /// The counter's name, as `inspect` prints it.
    fn name(&self) -> &str;

    /// Whether the counts are the provider's own, or an estimate.
    fn is_exact(&self) -> bool;
}

/// One word, one token, and frames for free: the counter of tests, where a budget is counted by eye.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words;

impl Count for Words {
    fn count(&self, text: &str) -> Tokens {
        Tokens(text.split_whitespace().count() as u64)
    }

    fn frame(&self) -> Frame {
        Frame { message: Tokens::ZERO, call: Tokens::ZERO, media: Tokens(50) }
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
    fn thousands_are_grouped() {
        let shown: Vec<_> = [0, 999, 1_000, 123_456, 1_234_567].map(|n| Tokens(n).to_string()).into();
        assert_eq!(shown, ["0", "999", "1,000", "123,456", "1,234,567"]);
    }

    #[test]
    fn subtraction_stops_at_zero() {
        assert_eq!(Tokens(3) - Tokens(5), Tokens::ZERO);
    }
}
