//! Splits a shell command into simple commands, as far as needed to find their actions.
//!
//! Handles words, quotes, redirections, pipes and heredocs; substitutions are kept as text.

/// One simple command.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct ShellCommand {
    /// The words without quotes and redirections.
    pub(super) words: Vec<String>,
    /// The files that its output is redirected to.
    pub(super) writes: Vec<String>,
    /// True if the output of the previous command is piped to it.
    pub(super) is_piped: bool,
    /// The hash of a heredoc that is passed to it.
    pub(super) heredoc_hash: Option<u64>,
    /// The text of the command without heredocs.
    pub(super) source: String,
}

/// The commands in order.
pub(super) fn split(command: &str) -> Vec<ShellCommand> {
    let mut scanner = Scanner {
        text: command,
        at: 0,
        command: ShellCommand::default(),
        start: 0,
        commands: Vec::new(),
        heredocs: Vec::new(),
    };
    scanner.run();
    scanner.commands
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
    command: ShellCommand,
    start: usize,
    commands: Vec<ShellCommand>,
    heredocs: Vec<String>,
}

impl<'a> Scanner<'a> {
    fn run(&mut self) {
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\r' => self.at += 1,
                '\\' if self.rest().starts_with("\\\n") => self.at += 2,
                '\n' => {
                    self.end(false);
                    self.at += 1;
                    self.skip_heredocs();
                    self.start = self.at;
                }
                '#' => self.skip_comment(),
                ';' | '(' | ')' => self.operator(1, false),
                '&' if self.rest().starts_with("&&") => self.operator(2, false),
                '&' if self.rest().starts_with("&>") => {
                    self.at += 1;
                    self.redirect();
                }
                '&' => self.operator(1, false),
                '|' if self.rest().starts_with("||") => self.operator(2, false),
                '|' => self.operator(1, true),
                '<' | '>' => self.redirect(),
                '0'..='9' if self.is_numbered_redirect() => {
                    self.at += 1;
                    self.redirect();
                }
                _ => {
                    let word = self.word();
                    self.command.words.push(word);
                }
            }
        }
        self.end(false);
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn is_numbered_redirect(&self) -> bool {
        matches!(self.text.as_bytes().get(self.at + 1), Some(b'<' | b'>'))
    }

    fn operator(&mut self, width: usize, is_pipe: bool) {
        self.end(is_pipe);
        self.at += width;
        self.start = self.at;
    }

    fn end(&mut self, is_pipe: bool) {
        let next = ShellCommand { is_piped: is_pipe, ..ShellCommand::default() };
        let mut command = std::mem::replace(&mut self.command, next);
        if command.words.is_empty() && command.writes.is_empty() {
            self.command.is_piped |= command.is_piped;
            return;
        }
        command.source = self.text[self.start..self.at].trim().to_owned();
        self.commands.push(command);
    }

    fn skip_comment(&mut self) {
        let rest = self.rest();
        self.at += rest.find('\n').unwrap_or(rest.len());
    }

    fn skip_heredocs(&mut self) {
        let start = self.at;
        let delimiters = std::mem::take(&mut self.heredocs);
        if delimiters.is_empty() {
            return;
        }
        for delimiter in delimiters {
            self.skip_heredoc(&delimiter);
        }
        let hash = xxhash_rust::xxh3::xxh3_64(&self.text.as_bytes()[start..self.at]);
        for command in
            self.commands.iter_mut().rev().take(9).filter(|command| command.heredoc_hash == Some(0))
        {
            command.heredoc_hash = Some(hash.max(1));
        }
    }

    fn skip_heredoc(&mut self, delimiter: &str) {
        while !self.rest().is_empty() {
            let line = self.rest().split('\n').next().unwrap_or_default();
            self.at = (self.at + line.len() + 1).min(self.text.len());
            if line.trim() == delimiter {
                return;
            }
        }
    }

    fn redirect(&mut self) {
        let is_input = self.rest().starts_with('<');
        let is_heredoc = self.rest().starts_with("<<") && !self.rest().starts_with("<<<");
        while self.rest().starts_with(['<', '>', '-', '|']) {
            self.at += 1;
        }
        if self.rest().starts_with('&') {
            self.at += 1;
            let _descriptor = self.word();
            return;
        }
        while self.rest().starts_with([' ', '\t']) {
            self.at += 1;
        }
        let target = self.word();
        if is_heredoc {
            self.command.heredoc_hash = Some(0);
            self.heredocs.push(target);
        } else if !is_input && !target.is_empty() && !target.starts_with("/dev/") {
            self.command.writes.push(target);
        }
    }

    /// Reads the word at the current position without its quotes. Advances unless there is an operator.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(c) = self.peek() {
            match c {
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '<' | '>' | ')' => break,
                '\'' => {
                    let inner = self.rest()[1..].split('\'').next().unwrap_or_default().to_owned();
                    self.at = (self.at + inner.len() + 2).min(self.text.len());
                    word.push_str(&inner);
                }
                '"' => self.double_quoted(&mut word),
                '$' if self.rest().starts_with("$(") => self.substitution(&mut word),
                '\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.peek() {
                        self.at += escaped.len_utf8();
                        word.push(escaped);
                    }
                }
                c => {
                    self.at += c.len_utf8();
                    word.push(c);
                }
            }
        }
        word
    }

    fn double_quoted(&mut self, word: &mut String) {
        self.at += 1;
        while let Some(c) = self.peek() {
            if self.rest().starts_with("$(") {
                self.substitution(word);
                continue;
            }
            self.at += c.len_utf8();
            match c {
                '"' => return,
                '\\' => {
                    let next = self.peek();
                    if !matches!(next, Some('"' | '\\' | '$' | '`')) {
                        word.push('\\');
                    }
                    if let Some(escaped) = next {
                        self.at += escaped.len_utf8();
                        word.push(escaped);
                    }
                }
                c => word.push(c),
            }
        }
    }

    /// Reads `$(…)`. A heredoc in it is skipped, because its text may contain quotes and brackets.
    fn substitution(&mut self, word: &mut String) {
        let start = self.at;
        let mut depth = 0;
        let mut heredoc: Option<&str> = None;
        while let Some(c) = self.peek() {
            if let (None, Some(rest)) = (heredoc, self.rest().strip_prefix("<<")) {
                let rest = rest.trim_start_matches(['-', ' ', '\'', '"']);
                let is_word = |c: char| c.is_alphanumeric() || c == '_';
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                heredoc = Some(&rest[..end]).filter(|delimiter| !delimiter.is_empty());
            }
            self.at += c.len_utf8();
            match c {
                '\n' => {
                    if let Some(delimiter) = heredoc.take() {
                        self.skip_heredoc(delimiter);
                    }
                }
                '(' => depth += 1,
                ')' if depth == 1 => break,
                ')' => depth -= 1,
                _ => {}
            }
        }
        word.push_str(&self.text[start..self.at]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(command: &str, expected: &[&[&str]]) {
        let words: Vec<_> = split(command).into_iter().map(|command| command.words).collect();
        assert_eq!(words, expected, "{command}");
    }

    #[test]
    fn splits_words_quotes_and_operators() {
        check(
            "cd /a && grep -n \"a b\" 'c d' | head -5 2>&1",
            &[&["cd", "/a"], &["grep", "-n", "a b", "c d"], &["head", "-5"]],
        );
        check("a;b\nc & d || e # no", &[&["a"], &["b"], &["c"], &["d"], &["e"]]);
        check("echo $(ls | wc -l) \\\n x", &[&["echo", "$(ls | wc -l)", "x"]]);
        check("", &[]);
    }

    #[test]
    fn skips_heredocs_and_records_redirections() {
        let commands = split("cat <<'EOF' > a.py\nrm -rf x\nEOF\npython a.py > out.txt 2>/dev/null");
        let shown: Vec<_> = commands
            .iter()
            .map(|p| (p.source.as_str(), p.writes.concat(), p.heredoc_hash.is_some()))
            .collect();
        assert_eq!(
            shown,
            [
                ("cat <<'EOF' > a.py", "a.py".to_owned(), true),
                ("python a.py > out.txt 2>/dev/null", "out.txt".to_owned(), false)
            ]
        );
    }

    #[test]
    fn heredoc_in_a_substitution_is_text() {
        let commands =
            split("git commit -m \"$(cat <<'EOF'\nfix: \"a) <b@c>\" it's > x\nEOF\n)\" && git push");
        let writes: Vec<_> = commands.iter().flat_map(|command| command.writes.clone()).collect();
        assert_eq!((commands.len(), writes), (2, Vec::new()));
        check("a \"$(b \"c d\")\" e", &[&["a", "$(b \"c d\")", "e"]]);
    }

    proptest! {
        #[test]
        fn splits_any_text(command in "[ a-z'\"\\\\$()<>|&;#\\n0-9ü-]{0,60}") {
            split(&command);
        }
    }
}
