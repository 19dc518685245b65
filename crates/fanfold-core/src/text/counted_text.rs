//! A text built line by line whose token count is the sum of the counts of its lines.

use std::sync::Arc;

use crate::model::tokens::{Count, Tokens};

/// A text built from lines. Most lines are counted already.
pub(crate) struct CountedText<'a> {
    counter: &'a dyn Count,
    text: String,
    /// The text that is not counted yet.
    loose: String,
    n_counted: u64,
    at: LastWrite,
    /// True if the counter allows to count the loose text separately from the lines taken out of it.
    is_cut: bool,
}

/// The element that was written last.
#[derive(PartialEq, Eq)]
enum LastWrite {
    /// A counted line, whose line end is counted but not yet written.
    Counted,
    /// The line end of a counted line.
    LineEnd,
    /// Anything else.
    Loose,
}

impl<'a> CountedText<'a> {
    pub(crate) fn with_room(n_bytes: usize, counter: &'a dyn Count) -> CountedText<'a> {
        let (text, loose) = (String::with_capacity(n_bytes), String::new());
        let is_cut = counter.is_cut_at_lines();
        CountedText { counter, text, loose, n_counted: 0, at: LastWrite::Loose, is_cut }
    }

    /// Appends text that is not counted yet.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        let mut rest = text;
        if self.at == LastWrite::Counted {
            rest = text.strip_prefix('\n').expect("a line of its own");
            self.at = LastWrite::LineEnd;
        }
        if let Some(first) = rest.chars().next().filter(|_| self.at == LastWrite::LineEnd) {
            self.is_cut &= first != '/' && !first.is_whitespace();
            self.at = LastWrite::Loose;
        }
        self.loose.push_str(rest);
    }

    /// Appends a line with a known token count.
    pub(crate) fn push_counted(&mut self, line: &str, own: u32) {
        if self.at != LastWrite::Counted {
            self.push("\n");
            self.text.pop();
        }
        self.text.extend(["\n ", line]);
        self.n_counted += u64::from(own);
        let visible = line.trim_start_matches([' ', '\t']);
        self.is_cut &= visible.starts_with(|first: char| !first.is_whitespace());
        self.at = LastWrite::Counted;
    }

    /// Returns the text and its token count, and starts a new text.
    pub(crate) fn take(&mut self) -> (Arc<str>, Tokens) {
        let tokens = match self.is_cut {
            true => Tokens(self.n_counted) + self.counter.count(&self.loose),
            false => self.counter.count(&self.text),
        };
        let text = Arc::from(self.text.as_str());
        self.text.clear();
        self.loose.clear();
        (self.n_counted, self.at, self.is_cut) = (0, LastWrite::Loose, self.counter.is_cut_at_lines());
        (text, tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts words, and one more where a slash follows a line end, as in real vocabularies.
    struct Joining;

    impl Count for Joining {
        fn count(&self, text: &str) -> Tokens {
            Tokens((text.split_whitespace().count() + text.matches("{\n/").count()) as u64)
        }

        fn is_cut_at_lines(&self) -> bool {
            true
        }

        fn name(&self) -> &str {
            "joining"
        }

        fn is_exact(&self) -> bool {
            true
        }
    }

    #[test]
    fn sum_of_lines_equals_count_of_text() {
        let check = |source: &str| {
            let mut lines = CountedText::with_room(0, &Joining);
            lines.push_counted("another text", 2);
            lines.take();
            lines.push("[1] first.rs");
            for line in ["if one {", "    if two {"] {
                lines.push_counted(line, Joining.count(&format!(" {line}\n")).0 as u32);
            }
            lines.push("\n");
            lines.push(source);
            lines.push_counted("three", 1);
            lines.push("\nend");
            let (text, tokens) = lines.take();
            assert_eq!(*text, format!("[1] first.rs\n if one {{\n     if two {{\n{source}\n three\nend"));
            assert_eq!(tokens, Joining.count(&text), "{text}");
        };
        check("second.rs");
        check("/usr/second");
    }
}
