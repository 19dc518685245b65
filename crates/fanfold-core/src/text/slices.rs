//! Cuts large originals into slices, so that a recall does not fill the window again.

use std::ops::Range;

use crate::model::tokens::Tokens;

/// The maximum size of the original behind one handle.
pub(crate) const SLICE: Tokens = Tokens(650);

/// Cuts a text of `tokens` tokens into slices of about `most` tokens each, at line ends where possible.
pub(crate) fn slices(text: &str, tokens: Tokens, most: Tokens) -> Vec<Range<usize>> {
    let n = tokens.0.div_ceil(most.0.max(1)) as usize;
    if n < 2 || text.len() < 2 * n {
        return std::iter::once(0..text.len()).collect();
    }
    let step = text.len().div_ceil(n);
    let mut out = Vec::with_capacity(n);
    let mut from = 0;
    while from < text.len() {
        let mut to = text.floor_char_boundary(from + step);
        if to < text.len() {
            // Cut at the last line end in the second half of the slice, if there is one.
            let half = text.floor_char_boundary(from + step / 2);
            if let Some(end) = text[half..to].rfind('\n') {
                to = half + end + 1;
            }
        }
        if to <= from {
            to = text[from..].char_indices().nth(1).map_or(text.len(), |(i, _)| from + i);
        }
        out.push(from..to);
        from = to;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_the_text() {
        for text in ["", "a", "ab\ncd\nef\n", "äöü\nßßßß äöüäöü\n", &"x".repeat(1000)] {
            for tokens in [0, 1, 3, 10, 100, 5000] {
                let cut = slices(text, Tokens(tokens), Tokens(3));
                let joined: String = cut.iter().map(|bytes| &text[bytes.clone()]).collect();
                assert_eq!(joined, text);
            }
        }
    }
}
