//! Removes thoughts from the beginning of an answer.
//!
//! ```text
//! <think>The user wants…</think>\n\nDone.   gives   Done.
//! ```
//!
//! Most servers return thoughts in a separate field. Others leave them in the text between these tags, and with some
//! prompt templates only the closing tag appears.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Removes thoughts between both tags.
pub(crate) fn strip_thinking(text: &str) -> &str {
    match text.trim_start().strip_prefix(OPEN) {
        Some(thought) => thought.split_once(CLOSE).map_or("", |(_, rest)| rest.trim_start()),
        None => text,
    }
}

/// Removes thoughts that were opened in the prompt: everything up to a line with only the closing tag.
pub(crate) fn strip_unopened_thinking(text: &str) -> &str {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        if line.contains(OPEN) {
            return text;
        }
        if line.trim() == CLOSE {
            return text[at..].trim_start();
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_removed() {
        let cases = [
            ("<think>so <b>x</b></think>\n\nDone. </think>", "Done. </think>"),
            ("\n <think></think>Done.", "Done."),
            ("<thin air", "<thin air"),
            ("<", "<"),
            ("Done.", "Done."),
            ("<think>never ends", ""),
            ("<think>x</think>  ", ""),
            ("", ""),
            ("a <think>b</think>", "a <think>b</think>"),
        ];
        for (text, expected) in cases {
            assert_eq!(strip_thinking(text), expected, "{text:?}");
        }
    }

    #[test]
    fn thoughts_opened_in_the_prompt_are_removed() {
        assert_eq!(strip_unopened_thinking("I think\nso\n</think>\n\nDone."), "Done.");
        assert_eq!(
            strip_unopened_thinking("The tag </think> ends thoughts."),
            "The tag </think> ends thoughts."
        );
        assert_eq!(
            strip_unopened_thinking("use <think>\nand\n</think>\nas tags"),
            "use <think>\nand\n</think>\nas tags"
        );
    }
}
