//! Limits the length of an answer, so that a recall does not fill the window.

use fanfold_core::thousands;

/// The longest answer: about 6,000 tokens.
pub(crate) const MAX_BYTES: usize = 24_000;

/// The part of a text that a call requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExcerptRange {
    /// The first line, counted from one.
    pub(crate) from: usize,
    /// The last line.
    pub(crate) to: usize,
    /// Characters to skip from the start of these lines.
    pub(crate) offset: usize,
}

/// A verbatim part of a text, and how to read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// A note on what was left out and how to get it; `None` if nothing was.
    pub(crate) rest: Option<String>,
}

/// The lines of a text, up to the length limit. `None` if the text has no such line.
pub(crate) fn excerpt(text: &str, range: ExcerptRange) -> Option<Excerpt> {
    let n_lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    if range.from < 1 || range.from > n_lines || range.from > range.to {
        return None;
    }
    let lines = lines(text, range.from, range.to);
    let skipped = lines.char_indices().nth(range.offset).map_or(lines.len(), |(at, _)| at);
    let (before, rest) = lines.split_at(skipped);
    if rest.len() <= MAX_BYTES {
        return Some(Excerpt { text: rest.to_owned(), rest: None });
    }
    let cut = rest.floor_char_boundary(MAX_BYTES);
    let first = range.from + newlines(before);
    let last = range.to.min(n_lines);
    let end = if range.to >= n_lines { String::new() } else { range.to.to_string() };
    let (shown, how) = match rest[..cut].rfind('\n').filter(|at| *at > 0) {
        Some(at) => {
            let next = first + newlines(&rest[..at]) + 1;
            (&rest[..at], format!("the rest begins with \"lines\": \"{next}-{end}\""))
        }
        // A line longer than an answer is continued by character offset.
        None => {
            let offset = range.offset + rest[..cut].chars().count();
            (&rest[..cut], format!("go on with \"lines\": \"{}-{end}\", \"offset\": {offset}", range.from))
        }
    };
    let (first, to, last) = (thousands(first as u64), first + newlines(shown), thousands(last as u64));
    let rest = format!("lines {first} to {} of {last}; {how}, \"search\" finds lines", thousands(to as u64));
    Some(Excerpt { text: shown.to_owned(), rest: Some(rest) })
}

/// The first of the lines that match a search, up to the length limit.
pub(crate) fn matching_lines(lines: String) -> Excerpt {
    if lines.len() <= MAX_BYTES {
        return Excerpt { text: lines, rest: None };
    }
    let cut = lines.floor_char_boundary(MAX_BYTES);
    let at = lines[..cut].rfind('\n').map_or(cut, |at| at + 1);
    let left_out = newlines(&lines[at..]);
    let rest = format!(
        "{} lines more; search for something rarer, or take lines by their numbers",
        thousands(left_out as u64)
    );
    Excerpt { text: lines[..at].to_owned(), rest: Some(rest) }
}

fn lines(text: &str, from: usize, to: usize) -> &str {
    let start_of = |line: usize| match line.checked_sub(2) {
        None => Some(0),
        Some(nth) => text.match_indices('\n').nth(nth).map(|(at, _)| at + 1),
    };
    let start = start_of(from).unwrap_or(text.len());
    let end = to.checked_add(1).and_then(start_of).map_or(text.len(), |next| next - 1);
    &text[start..end]
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ExcerptRange = ExcerptRange { from: 1, to: usize::MAX, offset: 0 };

    /// Reads a whole text by following the note of each excerpt.
    fn read_through(text: &str) -> (String, usize) {
        let (mut whole, mut range, mut n) = (String::new(), ALL, 0);
        loop {
            let part = excerpt(text, range).expect("the lines exist");
            assert!(part.text.len() <= MAX_BYTES);
            n += 1;
            whole.push_str(&part.text);
            let Some(rest) = part.rest else { return (whole, n) };
            let after =
                |key: &str| Some(rest.split_once(key)?.1.split(['"', ',', '-']).next()?.trim().to_owned());
            let from = after("\"lines\": \"").expect("the note has line numbers").parse().expect("a line");
            let offset = after("\"offset\": ").map_or(0, |offset| offset.parse().expect("a number"));
            if offset == 0 {
                whole.push('\n');
            }
            range = ExcerptRange { from, offset, ..ALL };
        }
    }

    #[test]
    fn following_the_notes_reads_the_whole_text() {
        let lines: String = (0..9_000).map(|i| format!("line {i} ä\n")).collect();
        let long = "ö".repeat(40_000);
        for text in [
            lines.clone(),
            long.clone(),
            format!("{lines}{long}\n{lines}"),
            format!("\n\n{long}\n\n{long}"),
            "short".to_owned(),
            String::new(),
        ] {
            let (whole, n) = read_through(&text);
            assert!(whole == text, "{} bytes became {} in {n} parts", text.len(), whole.len());
            assert!(n <= text.len() / (MAX_BYTES / 2) + 4, "{n} parts of {} bytes", text.len());
        }
    }

    #[test]
    fn excerpts_are_verbatim_lines() {
        let at = |from, to| excerpt("a\nb\n\nd", ExcerptRange { from, to, offset: 0 }).map(|part| part.text);
        assert_eq!(at(1, 1).as_deref(), Some("a"));
        assert_eq!(at(2, 3).as_deref(), Some("b\n"));
        assert_eq!(at(4, 90).as_deref(), Some("d"));
        assert_eq!(at(5, 9), None);
        assert_eq!(at(0, 9), None);
    }

    #[test]
    fn an_excerpt_stays_within_the_requested_lines() {
        let lines: String = (0..9_000).map(|i| format!("line {i}\n")).collect();
        let part = excerpt(&lines, ExcerptRange { from: 10, to: 8_000, offset: 0 }).expect("the lines exist");
        let rest = part.rest.expect("there is more");
        assert!(rest.contains("-8000\"") && rest.starts_with("lines 10 to "), "{rest}");
    }

    #[test]
    fn matching_lines_are_cut_between_lines() {
        let hits: String = (0..9_000).map(|i| format!("{i}: hit\n")).collect();
        let part = matching_lines(hits);
        assert!(part.text.ends_with(": hit\n") && part.text.len() <= MAX_BYTES);
        assert!(part.rest.expect("there are more").contains("lines more"));
    }
}
