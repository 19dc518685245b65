//! Heuristics that decide whether a value is likely to be a secret, a placeholder or code.

/// Counts of character classes in a value.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CharStats {
    pub(crate) n_lower: usize,
    pub(crate) n_upper: usize,
    pub(crate) n_digits: usize,
    pub(crate) n_symbols: usize,
    /// Separators of words in names.
    pub(crate) n_separators: usize,
    /// Number of changes between digits, lower-case and upper-case letters.
    pub(crate) n_changes: usize,
}

impl CharStats {
    pub(crate) fn new(value: &[u8]) -> CharStats {
        let mut stats = CharStats::default();
        let mut last = 0;
        for byte in value {
            let class = match byte {
                // Non-ASCII bytes count as lower-case letters.
                b'a'..=b'z' | 0x80.. => {
                    stats.n_lower += 1;
                    1
                }
                b'A'..=b'Z' => {
                    stats.n_upper += 1;
                    2
                }
                b'0'..=b'9' => {
                    stats.n_digits += 1;
                    3
                }
                b'_' | b'-' | b'.' | b':' => {
                    stats.n_separators += 1;
                    last
                }
                _ => {
                    stats.n_symbols += 1;
                    last
                }
            };
            stats.n_changes += usize::from(last != 0 && class != last);
            last = class;
        }
        stats
    }

    fn n_letters(self) -> usize {
        self.n_lower + self.n_upper
    }

    /// Returns whether the value looks random: the character class changes more often than in names.
    pub(crate) fn is_random(self) -> bool {
        let n = self.n_letters() + self.n_digits;
        let is_mixed = self.n_digits >= 2 && self.n_letters() >= 1 && self.n_changes * 6 >= n;
        let is_shuffled = self.n_lower >= 3 && self.n_upper >= 3 && self.n_changes * 3 >= n && n >= 16;
        (is_mixed && self.n_changes >= 3) || is_shuffled
    }

    /// Returns whether upper-case and lower-case letters alternate more often than in names of several words.
    pub(crate) fn is_mixed_case(self) -> bool {
        let n = self.n_letters();
        let is_balanced = self.n_upper * 3 >= n && self.n_lower * 3 >= n && self.n_changes * 4 >= n;
        self.n_lower >= 2 && self.n_upper >= 2 && (self.n_changes * 5 >= n * 2 || is_balanced)
    }

    /// Returns whether the value looks like a password: letters, and at least one digit or symbol.
    pub(crate) fn is_password_like(self) -> bool {
        self.n_letters() >= 2 && (self.n_digits >= 1 || self.n_symbols >= 1)
    }
}

/// Parts of placeholders.
const PLACEHOLDER_PARTS: &[&str] = &[
    "your",
    "example",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "redacted",
    "dummy",
    "insert",
    "todo",
    "replace",
    "env.",
    "environ",
    "getenv",
    "xxxx",
    "****",
    "....",
    "0000000",
    "1234567",
    "abcdef",
    "${",
    "$(",
    "{{",
    "%(",
    "sample",
    "hidden",
    "masked",
    "removed",
    "undefined",
    "vault:",
    "fake",
    "mock",
];

/// Complete values that are not secrets.
const PLACEHOLDERS: &[&str] = &[
    "password",
    "passwd",
    "password1",
    "password123",
    "pass",
    "secret",
    "token",
    "user",
    "username",
    "string",
    "str",
    "true",
    "false",
    "none",
    "null",
    "required",
    "optional",
    "test",
    "testing",
    "admin",
    "root",
    "guest",
    "default",
    "postgres",
    "pw",
    "pwd",
    "key",
    "apikey",
    "api_key",
    "mypassword",
    "mysecret",
    "mytoken",
    "foobar",
    "foo",
    "bar",
    "bearer",
    "basic",
];

/// Returns whether a value is a placeholder for a secret, or a reference to one.
pub(crate) fn is_placeholder(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let Ok(lower) = std::str::from_utf8(&lower) else { return false };
    let first = value.first().copied().unwrap_or_default();
    let is_one_byte = value.iter().all(|byte| *byte == first);
    is_one_byte
        || PLACEHOLDERS.contains(&lower)
        || PLACEHOLDER_PARTS.iter().any(|word| lower.contains(word))
        || value == b"%s"
        || (first == b'/' && !CharStats::new(value).is_random())
        || matches!(first, b'~' | b'.' | b'@' | b'$' | b'{' | b'<' | b'%' | b'[' | b'(')
}

/// Returns whether a value looks like a number, a call or a path in source code.
pub(crate) fn is_code(value: &[u8]) -> bool {
    // Length of a hexadecimal 256-bit key, which is longer than any number in code.
    const KEY_LEN: usize = 66;
    let is_number =
        (value.starts_with(b"0x") && value.len() != KEY_LEN) || matches!(value.first(), Some(b'*' | b'&'));
    let has_brackets =
        value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{' | b')' | b']' | b'}' | b'<' | b'>' | b'|'));
    // Padding of base64 is not a comparison.
    let inner = value.strip_suffix(b"==").unwrap_or(value);
    is_number
        || has_brackets
        || inner.windows(2).any(|pair| matches!(pair, b"::" | b"->" | b"=>" | b"&&" | b"||" | b"=="))
}

/// Returns whether a value is a passphrase of a few random words and not a sentence.
pub(crate) fn is_passphrase(value: &[u8]) -> bool {
    const SENTENCE_WORDS: &[&[u8]] = &[
        b"the",
        b"a",
        b"an",
        b"is",
        b"are",
        b"to",
        b"of",
        b"for",
        b"and",
        b"or",
        b"not",
        b"in",
        b"on",
        b"must",
        b"with",
        b"be",
        b"by",
        b"from",
        b"your",
        b"this",
        b"that",
        b"no",
        b"was",
        b"has",
        b"have",
        b"it",
        b"if",
        b"please",
        b"enter",
        b"password",
        b"token",
        b"secret",
        b"key",
        b"as",
        b"at",
        b"can",
        b"will",
        b"should",
        b"when",
        b"wrong",
        b"only",
        b"using",
        b"where",
        b"what",
        b"their",
        b"under",
        b"without",
        b"than",
        b"then",
        b"into",
        b"its",
        b"been",
        b"does",
        b"more",
        b"each",
        b"all",
        b"any",
    ];
    let words: Vec<&[u8]> = value.split(|byte| *byte == b' ').collect();
    let is_word = |word: &&[u8]| {
        word.len() >= 3 && word.iter().all(u8::is_ascii_lowercase) && !SENTENCE_WORDS.contains(word)
    };
    (3..=8).contains(&words.len()) && words.iter().all(is_word)
}

/// The length of a wallet's seed phrase at the start of a value: 12 to 24 lower-case words.
pub(crate) fn seed_phrase_len(value: &[u8]) -> Option<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    loop {
        let n = value[at..].iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let next = value.get(at + n).copied();
        let is_word = (3..=8).contains(&n) && !next.is_some_and(|byte| byte.is_ascii_alphanumeric());
        if is_word {
            ends.push(at + n);
        }
        if !is_word || next != Some(b' ') {
            break;
        }
        at += n + 1;
    }
    let n_words = [24, 21, 18, 15, 12].into_iter().find(|n| ends.len() >= *n)?;
    Some(ends[n_words - 1])
}
