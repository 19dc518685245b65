//! How much is answered at once. A recall is to bring something back into the window, not to fill it.

use fanfold_core::thousands;

/// No answer is longer than this, which is some 6,000 tokens.
pub(crate) const MOST_BYTES: usize = 24_000;

/// Which part of a text is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The first line, counted from one.
    pub(crate) from: usize,
    /// The last line.
    pub(crate) to: usize,
    /// So many characters of these lines are passed over.
    pub(crate) offset: usize,
}

/// A part of a text, as it stood, and how to get what comes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// What was left out, and which arguments bring it; none if nothing was.
    pub(crate) rest: Option<String>,
}

/// The wanted part of a text, as much of it as may be answered. None if it has no such line.
pub(crate) fn part(text: &str, wanted: Wanted) -> Option<Part> {
    let n_lines = text.bytes().filter(|byte| *byte == b'\n').count() + 1;
    if wanted.from < 1 || wanted.from > n_lines || wanted.from > wanted.to {
        return None;
    }
    let lines = lines(text, wanted.from, wanted.to);
    let skipped = lines.char_indices().nth(wanted.offset).map_or(lines.len(), |(at, _)| at);
    let (before, rest) = lines.split_at(skipped);
    if rest.len() <= MOST_BYTES {
        return Some(Part { text: rest.to_owned(), rest: None });
    }
    let cut = rest.floor_char_boundary(MOST_BYTES);
    let first = wanted.from + newlines(before);
    let last = wanted.to.min(n_lines);
    let end = if wanted.to >= n_lines { String::new() } else { wanted.to.to_string() };
    let (shown, how) = match rest[..cut].rfind('\n').filter(|at| *at > 0) {
        Some(at) => {
            let next = first + newlines(&rest[..at]) + 1;
            (&rest[..at], format!("the rest begins with \"lines\": \"{next}-{end}\""))
        }
        // A line that is longer than an answer is gone through by its characters.
        None => {
            let offset = wanted.offset + rest[..cut].chars().count();
            (&rest[..cut], format!("go on with \"lines\": \"{}-{end}\", \"offset\": {offset}", wanted.from))
        }
    };
    let (first, to, last) = (thousands(first as u64), first + newlines(shown), thousands(last as u64));
    let rest = format!("lines {first} to {} of {last}; {how}, \"search\" finds lines", thousands(to as u64));
    Some(Part { text: shown.to_owned(), rest: Some(rest) })
}

/// The beginning of lines that were found, as many as may be answered.
pub(crate) fn found(lines: String) -> Part {
    if lines.len() <= MOST_BYTES {
        return Part { text: lines, rest: None };
    }
    let cut = lines.floor_char_boundary(MOST_BYTES);
    let at = lines[..cut].rfind('\n').map_or(cut, |at| at + 1);
    let left_out = newlines(&lines[at..]);
    let rest = format!(
        "{} lines more; search for something rarer, or take lines by their numbers",
        thousands(left_out as u64)
    );
    Part { text: lines[..at].to_owned(), rest: Some(rest) }
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

    const ALL: Wanted = Wanted { from: 1, to: usize::MAX, offset: 0 };

    /// Follows the words of each part to the next one.
    fn read_through(text: &str) -> (String, usize) {
        let (mut whole, mut wanted, mut n) = (String::new(), ALL, 0);
        loop {
            let part = part(text, wanted).expect("the lines are there");
            assert!(part.text.len() <= MOST_BYTES);
            n += 1;
            whole.push_str(&part.text);
            let Some(rest) = part.rest else { return (whole, n) };
            let after =
                |key: &str| Some(rest.split_once(key)?.1.split(['"', ',', '-']).next()?.trim().to_owned());
            let from = after("\"lines\": \"").expect("it says which lines").parse().expect("a line");
            let offset = after("\"offset\": ").map_or(0, |offset| offset.parse().expect("a number"));
            if offset == 0 {
                whole.push('\n');
            }
            wanted = Wanted { from, offset, ..ALL };
        }
    }

    #[test]
    fn following_the_words_gives_all_of_it() {
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
            assert!(n <= text.len() / (MOST_BYTES / 2) + 4, "{n} parts of {} bytes", text.len());
        }
    }

    #[test]
    fn lines_are_taken_as_they_stand() {
        let at = |from, to| part("a\nb\n\nd", Wanted { from, to, offset: 0 }).map(|part| part.text);
        assert_eq!(at(1, 1).as_deref(), Some("a"));
        assert_eq!(at(2, 3).as_deref(), Some("b\n"));
        assert_eq!(at(4, 90).as_deref(), Some("d"));
        assert_eq!(at(5, 9), None);
        assert_eq!(at(0, 9), None);
    }

    #[test]
    fn a_part_keeps_to_the_lines_that_were_asked_for() {
        let lines: String = (0..9_000).map(|i| format!("line {i}\n")).collect();
        let part = part(&lines, Wanted { from: 10, to: 8_000, offset: 0 }).expect("they are there");
        let rest = part.rest.expect("there is more");
        assert!(rest.contains("-8000\"") && rest.starts_with("lines 10 to "), "{rest}");
    }

    #[test]
    fn many_hits_are_cut_between_lines() {
        let hits: String = (0..9_000).map(|i| format!("{i}: hit\n")).collect();
        let part = found(hits);
        assert!(part.text.ends_with(": hit\n") && part.text.len() <= MOST_BYTES);
        assert!(part.rest.expect("there are more").contains("lines more"));
    }
}
