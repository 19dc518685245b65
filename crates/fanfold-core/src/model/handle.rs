//! Handles: short names of originals, derived from their content.

use std::fmt;
use std::str::FromStr;

/// The name of an original: the beginning of its hash, in decimal digits.
///
/// It has six digits, or more if two originals of one session share the first six. Tokenizers encode three decimal
/// digits as one token, so a handle costs half as much as eight hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    /// The first `digits` digits of the hash, followed by zeros up to `LONG` digits.
    number: u64,
    digits: u8,
}

/// The whole hash of an original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash([u8; 32]);

impl Hash {
    pub(crate) fn new(original: &[u8]) -> Hash {
        Hash(*blake3::hash(original).as_bytes())
    }

    /// The hash of a sequence of originals, computed from their hashes.
    pub(crate) fn combine(parts: impl Iterator<Item = Hash>) -> Hash {
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            hasher.update(&part.0);
        }
        Hash(*hasher.finalize().as_bytes())
    }
}

/// The text is not a handle.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a handle: a handle is 6 to 18 digits, as they stand in a folded view")]
pub struct HandleError(String);

impl Handle {
    const SHORT: u8 = 6;
    const LONG: u8 = 18;

    /// The short handle of an original.
    pub fn new(original: &[u8]) -> Handle {
        Handle::from_hash(Hash::new(original))
    }

    /// The short handle of an original with this hash.
    pub(crate) fn from_hash(hash: Hash) -> Handle {
        Handle::full(hash).shortened(Self::SHORT)
    }

    /// A longer handle of the same original, for when another original has this one.
    pub(crate) fn longer(self, hash: Hash) -> Handle {
        Handle::full(hash).shortened((self.digits + 3).min(Self::LONG))
    }

    /// Returns whether this is a handle of the original with this hash.
    pub(crate) fn matches(self, hash: Hash) -> bool {
        Handle::full(hash).shortened(self.digits) == self
    }

    fn full(hash: Hash) -> Handle {
        let bits = u64::from_be_bytes(hash.0[..8].try_into().expect("a hash has 32 bytes"));
        Handle { number: bits % 10_u64.pow(u32::from(Self::LONG)), digits: Self::LONG }
    }

    fn shortened(self, digits: u8) -> Handle {
        let unused = 10_u64.pow(u32::from(Self::LONG - digits));
        Handle { number: self.number / unused * unused, digits }
    }
}

impl Handle {
    /// Appends the digits to a text.
    pub(crate) fn push_to(self, out: &mut String) {
        let shown = self.number / 10_u64.pow(u32::from(Self::LONG - self.digits));
        let digit = |place: u8| char::from(b'0' + (shown / 10_u64.pow(u32::from(place)) % 10) as u8);
        out.extend((0..self.digits).rev().map(digit));
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = String::with_capacity(usize::from(Handle::LONG));
        self.push_to(&mut digits);
        f.write_str(&digits)
    }
}

impl FromStr for Handle {
    type Err = HandleError;

    fn from_str(text: &str) -> Result<Handle, HandleError> {
        let text = text.trim().trim_start_matches('[').trim_end_matches(']');
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        let is_of_length = (usize::from(Self::SHORT)..=usize::from(Self::LONG)).contains(&text.len());
        if !is_number || !is_of_length {
            return Err(HandleError(text.chars().take(60).collect()));
        }
        let number: u64 = text.parse().map_err(|_| HandleError(text.to_owned()))?;
        let digits = text.len() as u8;
        Ok(Handle { number: number * 10_u64.pow(u32::from(Self::LONG - digits)), digits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_handles_round_trip() {
        let short = Handle::new(b"buy milk, eggs and bread");
        let long = short.longer(Hash::new(b"buy milk, eggs and bread"));
        assert_eq!(short.to_string().len(), 6);
        assert!(long.to_string().starts_with(&short.to_string()));
        assert_eq!(short.to_string().parse::<Handle>().expect("a handle"), short);
        assert_eq!(format!("[{long}]").parse::<Handle>().expect("a handle"), long);
    }

    #[test]
    fn parse_rejects_other_texts() {
        for text in ["", "xyz", "12345", "1234567890123456789", "12345g"] {
            assert!(text.parse::<Handle>().is_err(), "{text}");
        }
    }
}
