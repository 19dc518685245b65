//! Removes fenced memory from the text of a model, in chunks of any size.
//!
//! ```text
//! "Sure.\n<fanfold-mem", "ory>\nthe port is 8443\n</fanfold-memory>\nIt is 8443."   gives   "Sure.\n", "\nIt is 8443."
//! ```
//!
//! A fence begins with its tag on a line of its own, so sentences about the tag stay. A fence that is not closed within
//! the limit is text.

use crate::request::{FENCE, FENCE_END};

/// The size limit of a fence. A longer one is not a memory block.
const MAX_FENCE: usize = 64 << 10;

/// Removes fenced memory from a text in chunks.
#[derive(Debug, Clone)]
pub struct Scrubber {
    /// Undecided text: the beginning of a tag, or an open fence.
    held: String,
    /// True if only spaces precede it on its line.
    is_line_start: bool,
    is_inside: bool,
}

impl Default for Scrubber {
    fn default() -> Scrubber {
        Scrubber { held: String::new(), is_line_start: true, is_inside: false }
    }
}

impl Scrubber {
    /// Takes the next chunk and returns the text that can be shown now.
    pub fn feed(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let mut shown = String::with_capacity(text.len());
        loop {
            let has_more = if self.is_inside { self.inside(&mut shown) } else { self.outside(&mut shown) };
            if !has_more {
                return shown;
            }
        }
    }

    /// Ends the text and returns the undecided rest.
    pub fn flush(&mut self) -> String {
        let ended = std::mem::take(self);
        if ended.is_inside { String::new() } else { ended.held }
    }

    /// The possible beginning of a fence, which is not shown yet.
    pub(super) fn undecided(&self) -> &str {
        if self.is_inside { "" } else { &self.held }
    }

    /// Shows the text up to the possible beginning of a fence. Returns whether there is more to do.
    fn outside(&mut self, shown: &mut String) -> bool {
        let bytes = self.held.as_bytes();
        for at in 0..bytes.len() {
            if self.is_line_start && bytes[at] == b'<' {
                let rest = &bytes[at..];
                let is_open = is_prefix(FENCE, rest) && matches!(rest.get(FENCE.len()), Some(b'\n' | b'\r'));
                let may_open = rest.len() <= FENCE.len() && is_prefix_of(rest, FENCE);
                if is_open || may_open {
                    shown.extend(self.held.drain(..at));
                    self.is_inside = is_open;
                    return is_open;
                }
            }
            self.is_line_start = match bytes[at] {
                b'\n' => true,
                b' ' | b'\t' | b'\r' => self.is_line_start,
                _ => false,
            };
        }
        shown.push_str(&self.held);
        self.held.clear();
        false
    }

    /// Drops the text up to the end of the fence. Returns whether there is more to do.
    fn inside(&mut self, shown: &mut String) -> bool {
        let bytes = self.held.as_bytes();
        let end = memchr::memchr_iter(b'<', bytes).find(|at| is_prefix(FENCE_END, &bytes[*at..]));
        if let Some(end) = end.filter(|end| *end <= MAX_FENCE) {
            self.held.drain(..end + FENCE_END.len());
            (self.is_inside, self.is_line_start) = (false, true);
            return true;
        }
        let is_too_long = bytes.len() > MAX_FENCE + FENCE_END.len();
        if is_too_long {
            shown.extend(self.held.drain(..FENCE.len()));
            (self.is_inside, self.is_line_start) = (false, false);
        }
        is_too_long
    }
}

/// A text without fenced memory.
pub fn scrub(text: &str) -> String {
    let mut scrubber = Scrubber::default();
    let shown = scrubber.feed(text);
    shown + &scrubber.flush()
}

/// Returns whether bytes begin with a tag, ignoring case.
fn is_prefix(tag: &str, bytes: &[u8]) -> bool {
    bytes.get(..tag.len()).is_some_and(|head| head.eq_ignore_ascii_case(tag.as_bytes()))
}

/// Returns whether a tag begins with bytes, ignoring case.
fn is_prefix_of(bytes: &[u8], tag: &str) -> bool {
    tag.as_bytes().get(..bytes.len()).is_some_and(|head| head.eq_ignore_ascii_case(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::fence;

    /// Texts, and the shown part of them.
    fn vectors() -> Vec<(String, String)> {
        let block = fence("the port is 8443 < 9000\nKäse, 日本");
        let long = format!("{FENCE}\n{}\n{FENCE_END}\nend", "x".repeat(MAX_FENCE));
        let longer = format!("{FENCE}\n{}", "y".repeat(MAX_FENCE + 40));
        let pairs = [
            (String::new(), String::new()),
            ("plain".to_owned(), "plain".to_owned()),
            (block.clone(), String::new()),
            (format!("Sure.\n{block}\nIt is 8443."), "Sure.\n\nIt is 8443.".to_owned()),
            (format!("Sure.\r\n  {block}ä"), "Sure.\r\n  ä".to_owned()),
            (format!("{block}\n{block}\nafter"), "\n\nafter".to_owned()),
            (format!("{block} {block}"), " ".to_owned()),
            ("<FanFold-Memory>\r\nx</FANFOLD-MEMORY>y".to_owned(), "y".to_owned()),
            // Not at the beginning of a line, not alone on it, not the tag.
            (format!("the tag {block}"), format!("the tag {block}")),
            (format!("`{FENCE}` is a tag"), format!("`{FENCE}` is a tag")),
            (format!("{FENCE} is a tag"), format!("{FENCE} is a tag")),
            ("<fanfold-memories>\n1 < 2 <".to_owned(), "<fanfold-memories>\n1 < 2 <".to_owned()),
            (format!("a {FENCE_END} b"), format!("a {FENCE_END} b")),
            ("\n\n<\n <f\n<fan<fanfold-memory".to_owned(), "\n\n<\n <f\n<fan<fanfold-memory".to_owned()),
            // Truncated texts.
            (format!("a\n{FENCE}\nhalf of it"), "a\n".to_owned()),
            (format!("a\n{FENCE}\nx</fanfold-mem"), "a\n".to_owned()),
            (format!("a\n{FENCE}"), format!("a\n{FENCE}")),
            ("a\n<fanfold".to_owned(), "a\n<fanfold".to_owned()),
            // Fences beyond the size limit.
            (long.clone(), long),
            (longer.clone(), longer),
        ];
        pairs.into()
    }

    fn fed(pieces: &[&str]) -> String {
        let mut scrubber = Scrubber::default();
        let mut shown: String = pieces.iter().map(|piece| scrubber.feed(piece)).collect();
        shown.push_str(&scrubber.flush());
        shown
    }

    #[test]
    fn every_split_gives_the_same_text() {
        for (text, seen) in vectors() {
            assert_eq!(scrub(&text), seen, "{}", &text[..text.len().min(200)]);
            let is_long = text.len() > 1_000;
            // Of a long one, the places around its tags.
            let places: Vec<usize> = (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .filter(|at| !is_long || *at < 40 || *at + 60 > text.len() || *at % 9_973 == 0)
                .collect();
            for (i, first) in places.iter().enumerate() {
                let (a, rest) = text.split_at(*first);
                assert_eq!(fed(&[a, rest]), seen, "{:?} at {first}", &text[..text.len().min(200)]);
                for second in places[i..].iter().filter(|_| !is_long) {
                    let (b, c) = rest.split_at(second - first);
                    assert_eq!(fed(&[a, b, c]), seen, "{text:?} at {first}, {second}");
                }
            }
            let letters: Vec<String> = text.chars().take(3_000).map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(fed(&letters), scrub(&letters.concat()), "letter by letter");
        }
    }

    #[test]
    fn text_is_released_when_it_cannot_be_a_tag() {
        let mut scrubber = Scrubber::default();
        assert_eq!(scrubber.feed("hello <"), "hello <", "not at the beginning of a line");
        assert_eq!(scrubber.feed("\n<"), "\n");
        assert_eq!((scrubber.feed("fan"), scrubber.undecided()), (String::new(), "<fan"));
        assert_eq!(scrubber.feed("cy"), "<fancy");
    }
}
