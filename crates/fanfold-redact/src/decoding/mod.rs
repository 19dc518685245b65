//! Decoded texts, whose ranges map back to the text that they were decoded from.

mod escapes; //           escapes of JSON, code and shells
mod control_sequences; // colours and other sequences for terminals

pub(crate) use control_sequences::{StrippedText, strip_control_sequences};
pub(crate) use escapes::unescape;

use std::ops::Range;

/// A text after removals and replacements.
#[derive(Debug, Default)]
pub(crate) struct DecodedText {
    pub(crate) text: String,
    /// The start of each piece in the decoded and in the original text. A piece with the same length in both texts was
    /// copied; any other one is a whole escape.
    pieces: Vec<(usize, usize)>,
}

impl DecodedText {
    /// Appends a part of the original.
    pub(crate) fn copy(&mut self, original: &str, range: Range<usize>) {
        self.pieces.push((self.text.len(), range.start));
        self.text.push_str(&original[range.clone()]);
        self.pieces.push((self.text.len(), range.end));
    }

    /// Appends the character that an escape in the original encodes. The next piece begins after the escape.
    pub(crate) fn push(&mut self, decoded: char, escape: Range<usize>) {
        self.pieces.push((self.text.len(), escape.start));
        self.text.push(decoded);
        self.pieces.push((self.text.len(), escape.end));
    }

    /// Removes the last character, unless it ends a line.
    pub(crate) fn erase_last(&mut self) {
        if let Some(last) = self.text.chars().next_back().filter(|last| *last != '\n') {
            let at = self.text.len() - last.len_utf8();
            let original = self.original(at..at + 1).start;
            self.text.truncate(at);
            while self.pieces.pop_if(|(decoded, _)| *decoded > at).is_some() {}
            self.pieces.push((at, original));
        }
    }

    /// The part of the original that a part of this text was decoded from. It begins and ends at whole escapes.
    pub(crate) fn original(&self, range: Range<usize>) -> Range<usize> {
        let start = self.piece_of(range.start).start(range.start);
        let end = range.end.checked_sub(1).map_or(start, |last| self.piece_of(last).end(last));
        start..end.max(start)
    }

    /// The piece that contains a byte of this text.
    fn piece_of(&self, at: usize) -> Piece {
        let next = self.pieces.partition_point(|(decoded, _)| *decoded <= at);
        let (decoded, original) = next.checked_sub(1).map_or((0, 0), |i| self.pieces[i]);
        let (decoded_end, original_end) = self.pieces.get(next).copied().unwrap_or((at + 1, original + 1));
        let is_copied = decoded_end - decoded == original_end - original;
        Piece { decoded, original: original..original_end, is_copied }
    }
}

struct Piece {
    decoded: usize,
    original: Range<usize>,
    is_copied: bool,
}

impl Piece {
    fn start(&self, at: usize) -> usize {
        self.original.start + if self.is_copied { at - self.decoded } else { 0 }
    }

    fn end(&self, last: usize) -> usize {
        if self.is_copied { self.start(last) + 1 } else { self.original.end }
    }
}
