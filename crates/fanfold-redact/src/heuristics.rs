//! Whether a value is likely to be a secret, or stands for one that is elsewhere.

/// What values are made of.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct CharStats {
    pub(crate) n_lower: usize,
    pub(crate) n_upper: usize,
    pub(crate) n_digits: usize,
    pub(crate) n_symbols: usize,
    /// What joins the words of names.
    pub(crate) n_separators: usize,
    /// How often a digit, a small and a capital letter follow one another.
    pub(crate) n_changes: usize,
}

impl CharStats {
    pub(crate) fn new(value: &[u8]) -> CharStats {
        let mut mix = CharStats::default();
        let mut last = 0;
        for byte in value {
            let class = match byte {
                // Letters of other alphabets are letters.
                b'a'..=b'z' | 0x80.. => {
                    mix.n_lower += 1;
                    1
                }
                b'A'..=b'Z' => {
                    mix.n_upper += 1;
                    2
                }
                b'0'..=b'9' => {
                    mix.n_digits += 1;
                    3
                }
                b'_' | b'-' | b'.' | b':' => {
                    mix.n_separators += 1;
                    last
                }
                _ => {
                    mix.n_symbols += 1;
                    last
                }
            };
            mix.n_changes += usize::from(last != 0 && class != last);
            last = class;
        }
        mix
    }

    fn n_letters(self) -> usize {
        self.n_lower + self.n_upper
    }

    /// Whether it looks drawn by lot: classes change often, as in no name that a person gives.
    pub(crate) fn is_random(self) -> bool {
        let n = self.n_letters() + self.n_digits;
        let is_mixed = self.n_digits >= 2 && self.n_letters() >= 1 && self.n_changes * 6 >= n;
        let is_shuffled = self.n_lower >= 3 && self.n_upper >= 3 && self.n_changes * 3 >= n && n >= 16;
        (is_mixed && self.n_changes >= 3) || is_shuffled
    }

    /// Whether a person may have made it up as a password: letters, and what a rule for passwords asks for.
    pub(crate) fn is_password_like(self) -> bool {
        self.n_letters() >= 2 && (self.n_digits >= 1 || self.n_symbols >= 1)
    }
}

/// Words of values that only say where a secret would stand.
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

/// Words that are values as they stand, and no secrets.
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

/// Whether a value stands for a secret that is elsewhere, or for none.
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

/// Whether it is written as code writes a name, a call or a path to one.
pub(crate) fn is_code(value: &[u8]) -> bool {
    // So many digits are a key: no number of a program is that long.
    const KEY: usize = 66;
    let is_number =
        (value.starts_with(b"0x") && value.len() != KEY) || matches!(value.first(), Some(b'*' | b'&'));
    let is_called =
        value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{' | b')' | b']' | b'}' | b'<' | b'>' | b'|'));
    // What fills up the end of base64 compares nothing.
    let inner = value.strip_suffix(b"==").unwrap_or(value);
    is_number
        || is_called
        || inner.windows(2).any(|pair| matches!(pair, b"::" | b"->" | b"=>" | b"&&" | b"||" | b"=="))
}

/// Whether it is a few words drawn by lot, as pass phrases are, and no sentence.
pub(crate) fn is_passphrase(value: &[u8]) -> bool {
    const OF_SENTENCES: &[&[u8]] = &[
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
    ];
    let words: Vec<&[u8]> = value.split(|byte| *byte == b' ').collect();
    let is_word = |word: &&[u8]| {
        word.len() >= 3 && word.iter().all(u8::is_ascii_lowercase) && !OF_SENTENCES.contains(word)
    };
    (3..=8).contains(&words.len()) && words.iter().all(is_word)
}

/// How many bytes at the beginning are the words that a wallet is made again from: twelve to twenty-four of them, all small.
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
