//! Tool inputs: a command with its script, the content of a file, a patch.
//!
//! The content of a written file is in the file, so its outline is enough; a patch is condensed to its hunks and
//! changed lines. The shell lines of a command are kept, and each heredoc is condensed according to its kind.
//!
//! In 260 bytes:
//!
//! ```text
//! cd /srv/shop && cat > limits.toml <<'EOF'
//! # Limits of the shop, as agreed with the people who run the warehouse.
//! [orders]
//! per_day = 400
//! per_customer = 12
//! largest = 2_500
//!
//! [stock]
//! # Counted once a week, on Sundays, when nothing is sent.
//! count_on = "sunday"
//! warn_below = 20
//! refill_to = 120
//!
//! [returns]
//! days = 30
//! needs_receipt = true
//! inspected_by = "front desk"
//! refund_to = "same card"
//! EOF
//! systemctl restart shop && systemctl status shop
//! ->
//! cd /srv/shop && cat > limits.toml <<'EOF'
//! … 1 line
//! [orders]
//! per_day = 400
//! … 9 lines
//! [returns]
//! days = 30
//! needs_receipt = true
//! inspected_by = "front desk"
//! refund_to = "same card"
//! EOF
//! systemctl restart shop && systemctl status shop
//! ```

use crate::text::condense::{CondenseOptions, FileExcerpt, condense_within, is_clearly_shorter};

/// Condenses a tool input to about the given room. Returns `None` if it would not become clearly shorter.
pub fn condense_input(text: &str, options: &CondenseOptions<'_>) -> Option<String> {
    let parts = parts(text);
    let has_script = parts.iter().any(|part| part.is_script);
    if !has_script {
        return super::condense(text, options);
    }
    let n_shell: usize = parts.iter().filter(|part| !part.is_script).map(|part| part.text.len()).sum();
    let mut n_left = text.len() - n_shell;
    // Shell lines can fill the room; then the input is condensed as a whole.
    let mut left = options.room.checked_sub(n_shell + MIN_ROOM)? + MIN_ROOM;
    let mut out = String::new();
    for part in &parts {
        if !part.is_script {
            out.push_str(part.text);
            continue;
        }
        let room = left * part.text.len() / n_left.max(1);
        n_left -= part.text.len();
        let file = part.file.map(|path| FileExcerpt { path, first_line: Some(1), is_edited: &|_| false });
        let short = condense_within(part.text, &CondenseOptions { room, file, ..*options }, 0);
        left = left.saturating_sub(short.len());
        out.push_str(short.trim_end());
        out.push('\n');
    }
    is_clearly_shorter(&out, text).then_some(out)
}

/// The minimum room for a heredoc.
const MIN_ROOM: usize = 40;

/// Shell lines of a command, or the content of a heredoc.
struct CommandPart<'a> {
    text: &'a str,
    is_script: bool,
    /// The file that a heredoc is written to.
    file: Option<&'a str>,
}

fn parts(text: &str) -> Vec<CommandPart<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(end) = text[at..].find('\n').map(|end| at + end + 1) {
        let line = &text[at..end];
        at = end;
        let Some(delimiter) = heredoc(line) else { continue };
        let Some(close) = close_of(&text[end..], delimiter) else { continue };
        parts.push(CommandPart { text: &text[start..end], is_script: false, file: None });
        parts.push(CommandPart { text: &text[end..end + close], is_script: true, file: target(line) });
        (start, at) = (end + close, end + close);
    }
    parts.push(CommandPart { text: &text[start..], is_script: false, file: None });
    parts
}

/// The delimiter of the heredoc that a line begins: `EOF` in `cat <<'EOF' > a.py`.
fn heredoc(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("<<")?;
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start().trim_start_matches(['\'', '"', '\\']);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let delimiter = &rest[..end];
    let is_delimiter = delimiter.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_delimiter.then_some(delimiter)
}

/// The offset of the line that ends a heredoc.
fn close_of(text: &str, delimiter: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim() == delimiter {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// The file that a shell line writes to.
fn target(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('>').or_else(|| line.split_once("tee "))?;
    let rest = rest.trim_start_matches(['>', ' ', '\'', '"']);
    let name = rest.split([' ', '\n', '\'', '"', ';', '&', '|', '<']).next()?;
    (!name.is_empty() && !name.starts_with('-')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &str, expected: &[(&str, Option<&str>)]) {
        let parts = parts(command);
        let scripts: Vec<_> =
            parts.iter().filter(|part| part.is_script).map(|part| (part.text, part.file)).collect();
        assert_eq!(scripts, expected, "{command}");
        let joined: String = parts.iter().map(|part| part.text).collect();
        assert_eq!(joined, command);
    }

    #[test]
    fn splits_heredocs_from_shell_lines() {
        check("cat <<'EOF' > a.py\nprint(1)\nEOF\npython a.py", &[("print(1)\n", Some("a.py"))]);
        check("python - <<X\na << b\nX\n", &[("a << b\n", None)]);
        check("cat > 'b c.txt' <<-\"E\"\n\tx\n\tE", &[("\tx\n", Some("b"))]);
        check("tee out.md <<EOF\nhi\nEOF", &[("hi\n", Some("out.md"))]);
        check("cat <<A >a\n1\nA\ncat <<B >b\n2\nB\n", &[("1\n", Some("a")), ("2\n", Some("b"))]);
        check("cat <<'EOF'\nnever closed", &[]);
        check("echo $((1 << 2))\nls", &[]);
        check("", &[]);
    }
}
