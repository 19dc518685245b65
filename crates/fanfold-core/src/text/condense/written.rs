//! What an agent wrote: a command with its script, the content of a file, a patch.
//!
//! A written file's content is in the file, so its outline is enough; a patch is its places and changed lines. Of a
//! command the shell's own lines stay, and what it feeds to a program or a file is shortened by what it is.
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

use crate::text::condense::{FileShown, Wish, condense_within};

/// The text within about the room of the wish, if that is clearly shorter.
pub fn condense_written(text: &str, wish: &Wish<'_>) -> Option<String> {
    let parts = parts(text);
    let has_script = parts.iter().any(|part| part.is_script);
    if !has_script {
        return crate::text::condense::condense(text, wish);
    }
    let n_shell: usize = parts.iter().filter(|part| !part.is_script).map(|part| part.text.len()).sum();
    let mut n_left = text.len() - n_shell;
    // A shell line can be long, too: then the whole is a text like any other.
    let mut left = wish.room.checked_sub(n_shell + LEAST)? + LEAST;
    let mut out = String::new();
    for part in &parts {
        if !part.is_script {
            out.push_str(part.text);
            continue;
        }
        let room = left * part.text.len() / n_left.max(1);
        n_left -= part.text.len();
        let file = part.file.map(|path| FileShown { path, first_line: Some(1), is_worked_on: &|_| false });
        let short = condense_within(part.text, &Wish { room, file, ..*wish }, 0);
        left = left.saturating_sub(short.len());
        out.push_str(short.trim_end());
        out.push('\n');
    }
    let is_clearly_shorter = out.len() < text.len() - text.len() / 8;
    is_clearly_shorter.then_some(out)
}

/// The least that is worth saying of a script.
const LEAST: usize = 40;

/// A piece of a command: lines of the shell, or what stands in a heredoc.
struct Part<'a> {
    text: &'a str,
    is_script: bool,
    /// Where a script is written to.
    file: Option<&'a str>,
}

fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(end) = text[at..].find('\n').map(|end| at + end + 1) {
        let line = &text[at..end];
        at = end;
        let Some(word) = heredoc(line) else { continue };
        let Some(close) = close_of(&text[end..], word) else { continue };
        parts.push(Part { text: &text[start..end], is_script: false, file: None });
        parts.push(Part { text: &text[end..end + close], is_script: true, file: target(line) });
        (start, at) = (end + close, end + close);
    }
    parts.push(Part { text: &text[start..], is_script: false, file: None });
    parts
}

/// The word that ends the heredoc which a line begins: `EOF` of `cat <<'EOF' > a.py`.
fn heredoc(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("<<")?;
    let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start().trim_start_matches(['\'', '"', '\\']);
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let word = &rest[..end];
    let is_word = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    is_word.then_some(word)
}

/// Where the line stands that ends a heredoc.
fn close_of(text: &str, word: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim() == word {
            return Some(at);
        }
        at += line.len();
    }
    None
}

/// The file that a line of the shell writes to.
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
    fn scripts_are_told_from_shell() {
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
