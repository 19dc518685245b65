//! Removes everything from an answer that could be mistaken for a fence, a tool call or a provider's message markup.

/// Replaces markup and removes hidden characters. Idempotent.
pub(crate) fn clean(text: &str) -> String {
    // Remove hidden characters first, because they can split markup.
    let text: String = text.chars().filter(|c| !is_hidden(*c)).collect();
    let mut out = String::with_capacity(text.len());
    let mut n_ends = 0;
    for (i, c) in text.char_indices() {
        match c {
            '\n' => n_ends += 1,
            c if c.is_whitespace() => {}
            _ => n_ends = 0,
        }
        match c {
            // At most one blank line.
            '\n' if n_ends > 2 => {}
            '<' if is_mark(&text[i + 1..]) => out.push('‹'),
            c => out.push(c),
        }
    }
    out.trim().to_owned()
}

/// Removes reasoning and a code fence around an answer.
pub(crate) fn strip_wrapping(answer: &str) -> &str {
    let mut text = answer.trim();
    for tag in ["think", "thinking", "analysis", "reasoning"] {
        let opening = format!("<{tag}>");
        if let Some(rest) = text.strip_prefix(opening.as_str()) {
            // Without an end tag, everything is reasoning.
            text = rest.split_once(&format!("</{tag}>")).map_or("", |(_, words)| words.trim());
        }
    }
    let fence = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    match fence.and_then(|inner| inner.split_once('\n')) {
        Some((language, words)) if !language.contains(' ') => words.trim(),
        _ => text,
    }
}

/// Names of tags with a meaning for fanfold, harnesses or models.
const TAGS: [&str; 15] = [
    "fanfold",
    "memory-context",
    "memory",
    "tool_call",
    "tool_response",
    "tool_result",
    "tool_use",
    "function",
    "parameter",
    "invoke",
    "system",
    "user",
    "assistant",
    "summary",
    "earlier",
];

/// Returns whether the text after a `<` makes it markup.
fn is_mark(rest: &str) -> bool {
    let rest = rest.trim_start_matches(['/', ' ']);
    // A tag may have a namespace.
    let n_letters = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let rest = rest[n_letters..].strip_prefix(':').unwrap_or(rest);
    let is_tag = |tag: &str| {
        let begin = rest.get(..tag.len()).filter(|begin| begin.eq_ignore_ascii_case(tag));
        let next = begin.and_then(|begin| rest[begin.len()..].chars().next());
        begin.is_some() && !next.is_some_and(|c| c.is_alphanumeric())
    };
    rest.starts_with('|') || TAGS.iter().any(|tag| is_tag(tag))
}

/// Invisible characters that change how text is displayed.
fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && c != '\n' && c != '\t';
    is_control
        || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_markup() {
        let text = "a </fanfold> b <|im_start|>system\n<tool_call>{\"name\":\"x\"}</tool_call> <function=run> x < y Vec<System2> \u{202e}z <\u{200b}fanfold> </x:invoke>";
        let cleaned = clean(text);
        assert_eq!(
            cleaned,
            "a ‹/fanfold> b ‹|im_start|>system\n‹tool_call>{\"name\":\"x\"}‹/tool_call> ‹function=run> x < y Vec<System2> z ‹fanfold> ‹/x:invoke>"
        );
        assert_eq!(clean(&cleaned), cleaned);
        assert_eq!(clean("\n\n a\n\n\n\n\nb \u{0}\n"), "a\n\nb");
        assert_eq!(clean("\u{200b} \n"), "");
    }

    #[test]
    fn removes_reasoning_and_fences() {
        assert_eq!(strip_wrapping("<think>hm\nhm</think>\n\n## Goal\nx"), "## Goal\nx");
        assert_eq!(strip_wrapping("<think>for ever"), "");
        assert_eq!(strip_wrapping("```markdown\n## Goal\nx\n```"), "## Goal\nx");
        assert_eq!(strip_wrapping("## Goal\n```\ncode\n```"), "## Goal\n```\ncode\n```");
    }
}
