//! The text of a result without the wrappers that a harness adds, line by line.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::text::ansi::strip_ansi;

/// A line of a result, or a part of a long line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResultLine<'a> {
    /// The index of the line in the result. Parts of a line share it.
    pub(crate) at: u32,
    /// Its number in the file, if that is known.
    pub(crate) number: Option<u32>,
    /// The text, without the line number.
    pub(crate) text: &'a str,
    /// True if it continues the part before it, on the same line.
    pub(crate) continues: bool,
}

/// The text of a result without tags of the harness, reminders, and the representation of MCP contents.
pub(crate) fn unwrap_result(raw: &str) -> Cow<'_, str> {
    let mut text = strip_ansi(raw);
    if raw.contains('<') || raw.contains("[Python Interpreter") || raw.contains("[Command finished") {
        text = Cow::Owned(WRAPPER.replace_all(&text, "").into_owned());
    }
    if let Some(inner) = mcp_text(&text) {
        text = Cow::Owned(inner);
    }
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches('\n')),
        Cow::Owned(text) => Cow::Owned(text.trim_matches('\n').to_owned()),
    }
}

/// The texts in the representation of MCP contents by a Python client, or in JSON of the same form.
fn mcp_text(text: &str) -> Option<String> {
    let is_python =
        text.starts_with("meta=") || text.starts_with("TextContent(") || text.starts_with("[TextContent(");
    let mut inner = text.to_owned();
    if is_python {
        let parts = MCP_PART.captures_iter(text).filter_map(|found| found.get(1).or(found.get(2)));
        let parts = parts.map(|part| unescape(part.as_str()));
        inner = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
        if inner.is_empty() {
            return None;
        }
    } else if !text.starts_with('{') || !text.contains("\"content\"") {
        return None;
    }
    let nested = serde_json::from_str::<Value>(&inner).ok();
    let parts = nested.as_ref().and_then(|value| value.get("content")?.as_array());
    let texts =
        parts.map(|parts| parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>());
    match texts.filter(|texts| !texts.is_empty()) {
        Some(texts) => Some(texts.join("\n")),
        None => is_python.then_some(inner),
    }
}

/// Replaces the escapes of a string literal.
fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => {}
                Some(c) => out.push(c),
                None => {}
            },
            (c, false) => out.push(c),
        }
    }
    out
}

/// The lines of a result that are not blank. `first` is the number of the first line in its file.
pub(crate) fn result_lines(text: &str, first: Option<u32>) -> Vec<ResultLine<'_>> {
    const LONG: usize = 300;
    let mut out = Vec::new();
    for (at, line) in text.split('\n').enumerate() {
        let at = at as u32;
        let (number, line) = match numbered(line) {
            Some((number, line)) => (Some(number), line),
            None => (first.map(|first| first.saturating_add(at)), line),
        };
        let line = line.trim_end();
        if line.trim().is_empty() {
            continue;
        }
        if line.len() <= LONG {
            out.push(ResultLine { at, number, text: line, continues: false });
            continue;
        }
        let parts = parts_of(line).into_iter().enumerate();
        out.extend(parts.map(|(i, text)| ResultLine { at, number, text, continues: i > 0 }));
    }
    out
}

/// The line number that a tool printed before a line, as in `   12→code` or `12<tab>code`.
fn numbered(line: &str) -> Option<(u32, &str)> {
    let rest = line.trim_start();
    let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = rest.split_at(n_digits);
    let code = rest.strip_prefix('→').or_else(|| rest.strip_prefix('\t'))?;
    Some((digits.parse().ok()?, code))
}

/// The file of a hit of a search and the text of the line, as in `src/a.rs:12:fn main`.
pub(crate) fn hit_of(line: &str) -> Option<(&str, &str)> {
    let found = HIT.captures(line)?;
    Some((found.get(1)?.as_str(), found.get(2)?.as_str()))
}

/// A long line, cut after commas and brackets.
fn parts_of(line: &str) -> Vec<&str> {
    const WANTED: usize = 140;
    const MAX_BYTES: usize = 20_000;
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        let next = line[end..].chars().next();
        let ends_here = match c {
            ',' | ';' => true,
            '}' | ']' => next != Some(','),
            '.' => next == Some(' '),
            _ => false,
        };
        let is_cut = end - start >= WANTED && ends_here || end - start >= 2 * WANTED;
        if is_cut {
            parts.push(line[start..end].trim());
            start = end;
        }
        if end > MAX_BYTES {
            return parts;
        }
    }
    parts.push(line[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

static HIT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^(?:\./)?([\w./@+-]+\.\w{1,6}):\d+[:-](.*)$").expect("a pattern"));
static WRAPPER: LazyLock<Regex> = LazyLock::new(|| {
    let tags = "output(?:_head|_tail)?|persisted-output|warning|elided_chars|retrieval_status|task_id|task_type|tool_use_error";
    let whole = "(?s)<system-reminder>.*?</system-reminder>|<usage>.*?</usage>|<local-command-caveat>.*?</local-command-caveat>";
    let lines = r"<returncode>-?\d+</returncode>|\[Python Interpreter: [^\]]*\]|\[Command finished with exit code -?\d+\]";
    Regex::new(&format!("{whole}|</?(?:{tags})>|{lines}")).expect("a pattern")
});
// The closing quote is missing if the result was cut.
static MCP_PART: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?s)text=(?:'((?:[^'\\]|\\.)*)(?:'|\\?$)|"((?:[^"\\]|\\.)*)(?:"|\\?$))"#)
        .expect("a pattern")
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_are_removed() {
        let cases = [
            ("<returncode>0</returncode>\n<output>\na\nb\n</output>", "a\nb"),
            ("text\n<system-reminder>\nmind this\n</system-reminder>", "text"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            (
                "meta=None content=[TextContent(type='text', text='a\\nb', annotations=None)] isError=False",
                "a\nb",
            ),
            (r#"{"content":[{"type":"text","text":"x\ny"}],"isError":false}"#, "x\ny"),
            ("[TextContent(type='text', text='{\\n \"a\": 1,", "{\n \"a\": 1,"),
            ("a < b", "a < b"),
        ];
        for (raw, expected) in cases {
            assert_eq!(unwrap_result(raw), expected);
        }
    }

    #[test]
    fn lines_have_the_numbers_of_their_file() {
        let shown = |text: &str, first| {
            let lines = result_lines(text, first);
            lines.iter().map(|line| format!("{:?} {}", line.number, line.text)).collect::<Vec<_>>().join("/")
        };
        assert_eq!(shown("   7→fn a() {\n   8→\n   9→    b();", None), "Some(7) fn a() {/Some(9)     b();");
        assert_eq!(shown("x\n\ny", Some(40)), "Some(40) x/Some(42) y");
        assert_eq!(shown("13\tx\n14\t\n15\ty", None), "Some(13) x/Some(15) y");
        assert_eq!(shown("x\ny", None), "None x/None y");
        let long = format!("{{{}}}", "\"name\": \"value\", ".repeat(40));
        let parts = result_lines(&long, None);
        assert!(parts.len() > 3 && parts[1].continues && parts.iter().all(|part| long.contains(part.text)));
    }
}
