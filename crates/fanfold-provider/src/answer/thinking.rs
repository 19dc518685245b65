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

/// Removes the thoughts from a text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct ThinkingFilter {
    /// Text that may still be part of thoughts or of their opening tag.
    pending: String,
    is_over: bool,
}

impl ThinkingFilter {
    /// Reads a piece and returns the text after the thoughts.
    pub(crate) fn feed(&mut self, piece: &str) -> String {
        if self.is_over {
            return piece.to_owned();
        }
        self.pending.push_str(piece);
        let start = self.pending.trim_start();
        if let Some(thought) = start.strip_prefix(OPEN) {
            let Some((_, rest)) = thought.split_once(CLOSE) else { return String::new() };
            let rest = rest.trim_start().to_owned();
            // White space after the tag may continue in the next piece.
            if rest.is_empty() {
                return String::new();
            }
            return self.finish_thinking(rest);
        }
        if OPEN.starts_with(start) {
            return String::new();
        }
        let pending = std::mem::take(&mut self.pending);
        self.finish_thinking(pending)
    }

    /// The remaining text at the end of the answer. An incomplete opening tag is text.
    pub(crate) fn finish(self) -> String {
        let is_thought = self.is_over || self.pending.trim_start().starts_with(OPEN);
        if is_thought { String::new() } else { self.pending }
    }

    fn finish_thinking(&mut self, rest: String) -> String {
        self.is_over = true;
        self.pending = String::new();
        rest
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
    fn thoughts_are_removed_at_every_split() {
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
            for cut in 0..=text.len() {
                let mut thoughts = ThinkingFilter::default();
                let mut output = thoughts.feed(&text[..cut]);
                output.push_str(&thoughts.feed(&text[cut..]));
                output.push_str(&thoughts.finish());
                assert_eq!(output, expected, "{text:?} cut at {cut}");
            }
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
