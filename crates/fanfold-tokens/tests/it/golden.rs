//! Counts computed by Python's tiktoken 0.14.
//!
//! `len(tiktoken.get_encoding(name).encode_ordinary(text))` for o200k_base and cl100k_base, with the vocabulary
//! files that the litellm wheel ships (`TIKTOKEN_CACHE_DIR` set to its `litellm_core_utils/tokenizers`).

use fanfold_core::{Count, Tokens};
use fanfold_tokens::{cl100k, o200k};

#[test]
fn counts_equal_those_of_python() {
    for (text, in_o200k, in_cl100k) in COUNTS {
        let counts = (o200k().count(text), cl100k().count(text));
        assert_eq!(counts, (Tokens(in_o200k), Tokens(in_cl100k)), "{text:?}");
    }
}

#[test]
fn counters_have_names_and_are_exact() {
    assert_eq!((o200k().name(), o200k().is_exact()), ("o200k_base", true));
    assert_eq!((cl100k().name(), cl100k().is_exact()), ("cl100k_base", true));
}

const COUNTS: [(&str, u64, u64); 44] = [
    ("", 0, 0),
    (" ", 1, 1),
    ("a", 1, 1),
    ("hello world", 2, 2),
    ("Hello, world!", 4, 4),
    ("The quick brown fox jumps over the lazy dog.", 10, 10),
    ("don't I'LL we've they're he'd I'm it's", 8, 15),
    ("DON'T YOU'RE", 5, 4),
    ("'sam 'tis", 4, 5),
    ("x’s naïve café", 5, 5),
    ("fn main() {\n    println!(\"hi\");\n}\n", 10, 10),
    ("if (a && b) {\r\n\treturn;\r\n}\r\n", 10, 10),
    ("a;\n/b\n//c\n", 7, 7),
    ("\n\n\n", 1, 1),
    ("  \n  \n  ", 2, 2),
    ("a    b", 3, 3),
    ("\t\tindent\t", 4, 4),
    ("trailing   ", 3, 3),
    ("1234567890", 4, 4),
    ("3.14159 -42 0xdeadbeef", 12, 12),
    ("2026-11-15T04:55:07.123Z ERROR [main] failed: timeout=30s", 25, 25),
    ("{\"id\": 7, \"name\": \"read_file\", \"arguments\": {\"path\": \"/src/lib.rs\"}}", 24, 24),
    ("https://example.com/a/b?c=d&e=f#g", 12, 12),
    ("camelCaseHTTPServer2Go snake_case_name SCREAMING_CASE kebab-case", 16, 16),
    ("<|endoftext|>", 7, 7),
    ("<|im_start|>user<|im_end|>", 13, 13),
    ("========================================", 2, 2),
    ("----- ***** #####", 3, 3),
    ("aGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IHRleHQgZm9yIHRlc3Rpbmc=", 39, 42),
    ("d41d8cd98f00b204e9800998ecf8427e", 19, 19),
    ("你好，世界。今天天气很好。", 9, 16),
    ("これはテストです。", 5, 6),
    ("안녕하세요 세계", 3, 9),
    ("Привет, мир! Как дела?", 8, 12),
    ("مرحبا بالعالم", 4, 10),
    ("नमस्ते दुनिया", 5, 13),
    ("😀👩\u{200d}👩\u{200d}👧\u{200d}👦🇯🇵", 16, 26),
    ("é e\u{301} ﬁ ½ Ⅻ", 9, 10),
    ("a\u{a0}b\u{3000}c\u{2028}d", 7, 8),
    ("│ ├── src\n│   └── lib.rs\n", 14, 12),
    ("∀x∈ℝ: x² ≥ 0 → √x", 15, 17),
    ("def f(x: int) -> str:\n    return f\"{x:>10}\"\n", 18, 17),
    ("\0\u{1}\u{7f}", 3, 3),
    ("ſ'ſ 'S", 5, 7),
];
