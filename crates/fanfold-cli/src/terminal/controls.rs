//! Control characters made visible: text from a conversation, a server or a file name must not control a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The treatment of control characters in text for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Controls {
    /// They are printed as visible characters.
    Visible,
    /// They are printed as they are.
    Raw,
}

/// `--raw`, of commands that print conversations.
#[derive(Debug, clap::Args)]
pub(crate) struct RawFlag {
    /// Print control characters as they are, which lets them control the terminal [default: visible, as ␛ or <U+202E>]
    #[arg(long)]
    raw: bool,
}

impl RawFlag {
    pub(crate) fn controls(&self) -> Controls {
        if self.raw { Controls::Raw } else { Controls::Visible }
    }
}

/// The text with visible control characters, on any number of lines.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    replace(text, is_control, push_visible)
}

/// The text with visible control characters, on one line.
pub(crate) fn visible_line(text: &str) -> Cow<'_, str> {
    replace(text, |c| is_control(c) || matches!(c, '\n' | '\t'), push_visible)
}

/// JSON that means the same and has no control characters but line ends.
pub(super) fn escape_json(json: &str) -> Cow<'_, str> {
    replace(json, is_control, |out, c| {
        // Valid JSON has this one only between values.
        if c == '\r' {
            out.push(' ');
        } else {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
    })
}

/// True for characters that control a terminal or the direction of text, except line ends and tabs.
fn is_control(c: char) -> bool {
    let is_direction =
        matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() && !matches!(c, '\n' | '\t') || is_direction
}

/// ASCII characters become their pictures, which have the same width; others their code points.
fn push_visible(out: &mut String, c: char) {
    match u32::from(c) {
        code @ 0..0x20 => out.push(char::from_u32(0x2400 + code).unwrap_or('\u{fffd}')),
        0x7f => out.push('␡'),
        code => {
            let _ = write!(out, "<U+{code:04X}>");
        }
    }
}

fn replace(text: &str, is_replaced: impl Fn(char) -> bool, push: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(&is_replaced) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_replaced(c) { push(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_become_visible() {
        assert_eq!(
            visible("\u{1b}[31m a\r\n\tb\u{8}\u{7f}\u{9b}1m \u{202e}x"),
            "␛[31m a␍\n\tb␈␡<U+009B>1m <U+202E>x"
        );
        assert_eq!(visible_line("a\n\tb"), "a␊␉b");
        assert!(matches!(visible("é 汉 👍🏽 a\u{200d}b\n"), Cow::Borrowed(_)), "other text is not changed");
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let value = serde_json::json!({ "a\u{85}": "\u{1b}[1m \u{7f} \u{9d} \u{202e} é" });
        let json = format!("{value:#}\r\n");
        let escaped = escape_json(&json);
        assert!(!escaped.contains(is_control), "{escaped}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
    }
}
