//! Words that are hard to encode: escapes, line breaks, other scripts, lookalikes of JSON and tags.

/// The words of generated texts.
pub(crate) const WORDS: [&str; 24] = [
    "read",
    "the",
    "file",
    "src/main.rs",
    "naïve",
    "日本語",
    "😀",
    "\"quoted\"",
    "back\\slash",
    "line\nbreak",
    "tab\t",
    "error:",
    "</tag>",
    "{\"json\":1}",
    "42",
    "a/b",
    "[x]",
    "e\u{301}",
    "\u{7f}",
    "done.",
    "please",
    "why",
    "again",
    "fix",
];
