//! What a model thinks aloud at the beginning of its answer, left out.
//!
//! ```text
//! <think>The user wants…</think>\n\nDone.   gives   Done.
//! ```
//!
//! Servers that know a model's thoughts put them into a field of their own. Others leave them in the text, between
//! these tags; some templates even open them in the prompt, so that only the end is seen.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Takes the pieces of a text and gives those behind the thoughts.
#[derive(Debug, Default)]
pub(crate) struct ThinkingFilter {
    /// What may still be thoughts, or the tag that begins them.
    held: String,
    is_over: bool,
}

impl ThinkingFilter {
    /// Takes a piece and gives what is no thought.
    pub(crate) fn feed(&mut self, piece: &str) -> String {
        if self.is_over {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        let begun = self.held.trim_start();
        if let Some(thought) = begun.strip_prefix(OPEN) {
            let Some((_, rest)) = thought.split_once(CLOSE) else { return String::new() };
            let rest = rest.trim_start().to_owned();
            // White space behind the tag may go on in the next piece.
            if rest.is_empty() {
                return String::new();
            }
            return self.finish_thinking(rest);
        }
        if OPEN.starts_with(begun) {
            return String::new();
        }
        let held = std::mem::take(&mut self.held);
        self.finish_thinking(held)
    }

    /// What is left when there is no more: a tag that was never completed is text.
    pub(crate) fn finish(self) -> String {
        let is_thought = self.is_over || self.held.trim_start().starts_with(OPEN);
        if is_thought { String::new() } else { self.held }
    }

    fn finish_thinking(&mut self, rest: String) -> String {
        self.is_over = true;
        self.held = String::new();
        rest
    }
}

/// A whole text without thoughts whose beginning stood in the prompt: up to a line that only ends them.
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
    fn thoughts_are_left_out_however_they_are_cut() {
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
                let mut heard = thoughts.feed(&text[..cut]);
                heard.push_str(&thoughts.feed(&text[cut..]));
                heard.push_str(&thoughts.finish());
                assert_eq!(heard, expected, "{text:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn thoughts_that_began_in_the_prompt() {
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
