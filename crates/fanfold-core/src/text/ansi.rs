//! Terminal escape sequences.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr;
use regex::Regex;

/// Removes colours, cursor movements and commands of the operating system, such as a window title.
pub(crate) fn strip_ansi(text: &str) -> Cow<'_, str> {
    if memchr(b'\x1b', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    ANSI.replace_all(text, "")
}

static ANSI: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("\x1b\\[[\\d;?]*[A-Za-z]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)").expect("a pattern")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_and_titles_are_removed() {
        assert_eq!(strip_ansi("a\x1b[1;31mb\x1b[0m c\x1b]0;title\x07d\x1b]11;?\x1b\\e"), "ab cde");
        assert_eq!(strip_ansi("plain"), "plain");
    }
}
