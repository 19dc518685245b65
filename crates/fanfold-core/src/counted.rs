//! A text of lines that are counted one by one, so that what it costs is a sum.

use std::sync::Arc;

use crate::tokens::{Count, Tokens};

/// A text that is written line by line, most of which are counted already.
pub(crate) struct Lines<'a> {
    counter: &'a dyn Count,
    text: String,
    /// What of it is not counted yet.
    loose: String,
    n_counted: u64,
    at: At,
    /// Whether the counter cuts wherever lines were left out of what is loose.
    is_cut: bool,
}

/// What a text was written up to.
#[derive(PartialEq, Eq)]
enum At {
    /// A counted line, whose line end is counted and not yet written.
    Counted,
    /// The beginning of a line behind one.
    Behind,
    /// Anything else.
    Loose,
}

impl<'a> Lines<'a> {
    /// About so many bytes will be written.
    pub(crate) fn with_room(n_bytes: usize, counter: &'a dyn Count) -> Lines<'a> {
        let (text, loose) = (String::with_capacity(n_bytes), String::new());
        let is_cut = counter.is_cut_at_lines();
        Lines { counter, text, loose, n_counted: 0, at: At::Loose, is_cut }
    }

    /// Writes on.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
        let mut rest = text;
        if self.at == At::Counted {
            rest = text.strip_prefix('\n').expect("a line of its own");
            self.at = At::Behind;
        }
        if let Some(first) = rest.chars().next().filter(|_| self.at == At::Behind) {
            self.is_cut &= first != '/' && !first.is_whitespace();
            self.at = At::Loose;
        }
        self.loose.push_str(rest);
    }

    /// Writes a line of its own, of which is known what it costs.
    pub(crate) fn push_counted(&mut self, line: &str, own: u32) {
        if self.at != At::Counted {
            self.push("\n");
            self.text.pop();
        }
        self.text.extend(["\n ", line]);
        self.n_counted += u64::from(own);
        let visible = line.trim_start_matches([' ', '\t']);
        self.is_cut &= visible.starts_with(|first: char| !first.is_whitespace());
        self.at = At::Counted;
    }

    /// The text so far, and what it costs. What is written then is another text.
    pub(crate) fn take(&mut self) -> (Arc<str>, Tokens) {
        let tokens = match self.is_cut {
            true => Tokens(self.n_counted) + self.counter.count(&self.loose),
            false => self.counter.count(&self.text),
        };
        let text = Arc::from(self.text.as_str());
        self.text.clear();
        self.loose.clear();
        (self.n_counted, self.at, self.is_cut) = (0, At::Loose, self.counter.is_cut_at_lines());
        (text, tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words, and one more where a slash goes with the line end before it, as in real vocabularies.
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
    fn lines_cost_what_their_text_costs() {
        let check = |source: &str| {
            let mut lines = Lines::with_room(0, &Joining);
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
