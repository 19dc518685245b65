//! Hashes of lines, and the line numbers that reading tools print.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

/// The hash of a line.
pub(crate) type LineHash = u64;

/// A set of line hashes.
pub(crate) type LineSet = HashSet<LineHash, BuildHasherDefault<IdentityHasher>>;

/// Removes the line number that a reading tool put before a line, keeping the indentation.
pub(crate) fn without_number(line: &str) -> &str {
    let number = line.trim_ascii_start();
    let n_digits = number.bytes().take_while(u8::is_ascii_digit).count();
    if n_digits == 0 {
        return line;
    }
    number[n_digits..].strip_prefix(['→', '|', ':', '\t']).unwrap_or(line)
}

/// Uses a hash as its own hash.
#[derive(Debug, Clone, Default)]
pub(crate) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_numbers_are_ignored() {
        assert_eq!(without_number("  12→\tlet x = 1;"), "\tlet x = 1;");
        assert_eq!(without_number("    let x = 1;"), "    let x = 1;");
        assert_eq!(without_number("1 apple"), "1 apple");
        // Only one number is removed.
        assert_eq!(without_number("  12→34: x"), "34: x");
    }
}
