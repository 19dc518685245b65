//! Words and word boundaries, by byte offsets.

use memchr::memmem::Finder;

/// True for letters, digits and underscores.
pub(crate) fn is_word(c: char) -> bool {
    if c.is_ascii() { IS_WORD[c as usize] } else { c.is_alphanumeric() }
}

/// The character before an offset.
pub(crate) fn before(text: &str, at: usize) -> Option<char> {
    match text.as_bytes()[..at].last() {
        Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
        Some(_) => text[..at].chars().next_back(),
        None => None,
    }
}

/// The character at an offset.
pub(crate) fn at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
        Some(_) => text[at..].chars().next(),
        None => None,
    }
}

/// The end of the run of matching characters that starts at an offset.
pub(crate) fn run_end(text: &str, from: usize, is_in: impl Fn(char) -> bool) -> usize {
    let mut end = from;
    while let Some(c) = at(text, end).filter(|c| is_in(*c)) {
        end += c.len_utf8();
    }
    end
}

/// The start of the run of matching characters that ends at an offset.
pub(crate) fn run_start(text: &str, to: usize, is_in: impl Fn(char) -> bool) -> usize {
    let mut start = to;
    while let Some(c) = before(text, start).filter(|c| is_in(*c)) {
        start -= c.len_utf8();
    }
    start
}

/// The number of characters in a text.
pub(crate) fn n_chars(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

/// Calls a function with each word of a text and its offset.
pub(crate) fn each_word<'t>(text: &'t str, mut take: impl FnMut(usize, &'t str)) {
    let bytes = text.as_bytes();
    let mut start = None;
    let mut i = 0;
    while let Some(&byte) = bytes.get(i) {
        let (is_word, length) = match byte {
            ..0x80 => (IS_WORD[usize::from(byte)], 1),
            _ => at(text, i).map_or((false, 1), |c| (is_word(c), c.len_utf8())),
        };
        match (is_word, start) {
            (true, None) => start = Some(i),
            (false, Some(from)) => {
                take(from, &text[from..i]);
                start = None;
            }
            (true, Some(_)) | (false, None) => {}
        }
        i += length;
    }
    if let Some(from) = start {
        take(from, &text[from..]);
    }
}

/// [`is_word`] for ASCII.
const IS_WORD: [bool; 128] = {
    let mut is_word = [false; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        is_word[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_';
        byte += 1;
    }
    is_word
};

/// A text to search for on word boundaries: a word at its start or end must match a whole word.
#[derive(Debug)]
pub(crate) struct Needle {
    finder: Finder<'static>,
    text: String,
    is_head: bool,
    is_tail: bool,
    /// The range of its longest word; the needle can only occur where that word does.
    pub(crate) key: Option<(usize, usize)>,
}

impl Needle {
    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn new(text: &str) -> Needle {
        let mut key: Option<(usize, usize, usize)> = None;
        each_word(text, |start, word| {
            let n = n_chars(word);
            if key.is_none_or(|(.., most)| n > most) {
                key = Some((start, start + word.len(), n));
            }
        });
        Needle {
            finder: Finder::new(text.as_bytes()).into_owned(),
            is_head: text.chars().next().is_some_and(is_word),
            is_tail: text.chars().next_back().is_some_and(is_word),
            key: key.map(|(start, end, _)| (start, end)),
            text: text.to_owned(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Its longest word.
    pub(crate) fn key_word(&self) -> Option<&str> {
        self.key.map(|(start, end)| &self.text[start..end])
    }

    /// True if it occurs at an offset of a text.
    pub(crate) fn is_at(&self, text: &str, start: usize) -> bool {
        let is_match =
            text.as_bytes().get(start..).is_some_and(|rest| rest.starts_with(self.text.as_bytes()));
        is_match && self.is_bounded(text, start)
    }

    fn is_bounded(&self, text: &str, start: usize) -> bool {
        let end = start + self.text.len();
        let is_cut_before = self.is_head && before(text, start).is_some_and(is_word);
        let is_cut_after = self.is_tail && at(text, end).is_some_and(is_word);
        !is_cut_before && !is_cut_after
    }

    /// The offsets of its first occurrences, at most `max`.
    pub(crate) fn find_all(&self, text: &str, max: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(start) = self.finder.find(&text.as_bytes()[from..]).map(|n| n + from) {
            if self.is_bounded(text, start) {
                found.push(start);
                if found.len() >= max {
                    break;
                }
            }
            from = start + 1;
        }
        found
    }

    /// True if it occurs in a text on word boundaries.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        !self.find_all(text, 1).is_empty()
    }

    /// True if a text contains it, on word boundaries or not.
    pub(crate) fn is_part_of(&self, text: &str) -> bool {
        self.finder.find(text.as_bytes()).is_some()
    }
}

/// Replaces visible escapes (`\n`, `\"`) by spaces, so that text inside dumped JSON is found.
///
/// A run of backslashes with its `n`, `r` or `t` becomes a space, unless it looks like a path (`\new\file`); a run
/// before a quote becomes a space.
pub(crate) fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let Some(first) = memchr::memchr(b'\\', bytes) else { return text.to_owned() };
    let mut out = String::with_capacity(text.len());
    let (mut done, mut i) = (0, first);
    loop {
        let end = i + bytes[i..].iter().take_while(|byte| **byte == b'\\').count();
        let replaced_to = match bytes.get(end) {
            Some(b'n' | b'r' | b't') if !is_path(&bytes[end + 1..]) => Some(end + 1),
            Some(b'"' | b'\'') => Some(end),
            _ => None,
        };
        if let Some(replaced_to) = replaced_to {
            out.push_str(&text[done..i]);
            out.push(' ');
            done = replaced_to;
        }
        match memchr::memchr(b'\\', &bytes[end..]) {
            Some(next) => i = end + next,
            None => break,
        }
    }
    out.push_str(&text[done..]);
    out
}

fn is_path(rest: &[u8]) -> bool {
    let n = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    n >= 2 && matches!(rest.get(n), Some(b'/' | b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_spaces() {
        let check = |text: &str, expected: &str| assert_eq!(unescape(text), expected);
        check("no escape", "no escape");
        check(r"one\ntwo", "one two");
        check(r#"{\"a\": 1}"#, r#"{ "a ": 1}"#);
        check(r"\\\\n", " ");
        check(r"c:\new\file", r"c:\new\file");
        check(r"a\nab b", " b".replacen(' ', "a ab ", 1).trim_end());
        check(r"end\", r"end\");
    }

    #[test]
    fn a_needle_is_found_on_word_boundaries() {
        let check = |needle: &str, text: &str, at: &[usize]| {
            assert_eq!(Needle::new(needle).find_all(text, 9), at, "{needle} in {text}");
        };
        check("foo", "foo_bar foo barfoo foo", &[8, 19]);
        check("/foo", "a/foo /foo2", &[1]);
        check("é1", "é1 aé1 é1é", &[0]);
        check("aa", "aaa aa", &[4]);
    }

    #[test]
    fn the_key_is_the_first_longest_word() {
        assert_eq!(Needle::new("src/lib/core.rs").key_word(), Some("core"));
        assert_eq!(Needle::new("--").key_word(), None);
    }
}
