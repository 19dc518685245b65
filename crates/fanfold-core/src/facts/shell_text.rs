//! A shell command as the record shows it: one line, with the bodies of heredocs apart.

/// A shell command without the bodies of its heredocs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShellText {
    /// The command in one line; each heredoc is replaced by `<<…`.
    pub(crate) flat: String,
    /// The bodies of the heredocs.
    pub(crate) bodies: Vec<String>,
    /// The file that the first command writes its heredoc to: `cat > FILE <<EOF`.
    pub(crate) written_file: Option<String>,
    /// True if it is appended to the file.
    pub(crate) is_appended: bool,
    /// The commands that follow the writing command.
    pub(crate) then: String,
}

impl ShellText {
    pub(crate) fn parse(command: &str) -> ShellText {
        let mut text = ShellText::default();
        let mut lines = command.lines();
        let mut kept: Vec<String> = Vec::new();
        while let Some(line) = lines.next() {
            let Some((before, end, after)) = heredoc_in(line) else {
                kept.push(line.to_owned());
                continue;
            };
            let mut body: Vec<&str> = Vec::new();
            for line in lines.by_ref() {
                if line.trim_start_matches('\t').trim_end() == end {
                    break;
                }
                body.push(line);
            }
            text.bodies.push(body.join("\n"));
            kept.push(format!("{before}<<…{after}"));
        }
        let is_code = |line: &&String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        let code: Vec<&str> = kept.iter().filter(is_code).map(|line| line.trim()).collect();
        text.flat = without_directory(&code.join(" ; ")).to_owned();
        text.find_written_file();
        text
    }

    fn find_written_file(&mut self) {
        let writes = self.flat.starts_with("cat") || self.flat.starts_with("tee ");
        let end = self.flat.find([';', '&', '|']).unwrap_or(self.flat.len());
        let (first, rest) = self.flat.split_at(end);
        if !writes || !first.contains("<<…") {
            return;
        }
        self.is_appended = first.contains(">>") || first.contains("tee -a");
        let words = first.replace("<<…", " ").replace(">>", " > ").replace('>', " > ");
        let mut words =
            words.split_whitespace().skip(1).filter(|word| *word != ">" && !word.starts_with('-'));
        self.written_file = words.next().map(|word| word.trim_matches(['"', '\'']).to_owned());
        if self.written_file.is_some() {
            self.then = rest.trim_start_matches([';', '&', ' ']).to_owned();
        }
    }
}

/// The text before a heredoc, its end mark, and the text after it.
fn heredoc_in(line: &str) -> Option<(&str, &str, &str)> {
    let at = line.find("<<").filter(|at| !line[at + 2..].starts_with('<'))?;
    let rest = line[at + 2..].trim_start_matches(['-', ' ']);
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let rest = quote.map_or(rest, |_| &rest[1..]);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    let after = quote.map_or(Some(after), |quote| after.strip_prefix(quote))?;
    let is_mark = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_mark.then_some((&line[..at], word, after))
}

/// The command without a leading change of directory.
fn without_directory(command: &str) -> &str {
    let Some(rest) = command.strip_prefix("cd ") else { return command };
    match rest.find(" && ").map(|at| (at, 4)).or_else(|| rest.find(" ; ").map(|at| (at, 3))) {
        Some((at, n)) if !rest[..at].trim().contains(' ') => rest[at + n..].trim_start(),
        _ => command,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heredocs_are_taken_out() {
        let text = ShellText::parse("cd /r && cat <<'EOF' > a.py\nprint(1)\nEOF\npython a.py | tail -3");
        assert_eq!(text.flat, "cat <<… > a.py ; python a.py | tail -3");
        assert_eq!(text.bodies, ["print(1)"]);
        assert_eq!(
            (text.written_file.as_deref(), text.then.as_str()),
            (Some("a.py"), "python a.py | tail -3")
        );
        let text = ShellText::parse("# a comment\npython - <<EOF\nx = 1\ny = 2\nEOF");
        assert_eq!(
            (text.flat.as_str(), text.bodies.as_slice()),
            ("python - <<…", &["x = 1\ny = 2".to_owned()][..])
        );
        assert_eq!(text.written_file, None);
    }

    #[test]
    fn other_redirections_are_no_heredocs() {
        for command in ["cat <<< word", "a << 3", "echo \"1 << 2\"", "ls"] {
            let text = ShellText::parse(command);
            assert_eq!((text.flat.as_str(), text.bodies.len()), (command, 0));
        }
    }
}
