//! Terminal escape sequences.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memchr;
use regex::Regex;

/// Removes colours and cursor movements.
pub(crate) fn strip_ansi(text: &str) -> Cow<'_, str> {
    if memchr(b'\x1b', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    ANSI.replace_all(text, "")
}

static ANSI: LazyLock<Regex> = LazyLock::new(|| Regex::new("\x1b\\[[\\d;?]*[A-Za-z]").expect("a pattern"));
