//! Cuts text into the pieces a vocabulary merges on its own, as its regular expression would.
//!
//! ```text
//! o200k   fn readAll(&self)\n  // don't   ->   fn| read|All|(&|self|)\n| | //| don't
//! cl100k  fn readAll(&self)\n  // don't   ->   fn| readAll|(&|self|)\n| | //| don|'t
//! ```
//!
//! Where a piece ends depends on where it begins and on what follows, never on what came before.
//! So ASCII pieces are found here, byte by byte, and whatever touches another character is left,
//! from the beginning of its piece to the next certain cut, to the real regular expression.

/// The longest piece kept whole. A longer one is cut here, which may cost a token at each cut.
pub(crate) const LONGEST_PIECE: usize = 4096;

/// The longest stretch around non-ASCII text kept whole when it has no certain cut.
const LONGEST_STRETCH: usize = 4 * LONGEST_PIECE;

/// Which of the two regular expressions is followed.
pub(crate) trait Rules {
    /// Words end where lower case turns to upper, and take their contraction (`don't`) along.
    const SPLITS_CASE: bool;
    /// Slashes after the newlines that follow punctuation belong to it.
    const SLASH_ENDS_LINE: bool;
}

/// The rules of GPT-4o and later.
#[derive(Debug)]
pub struct O200kRules;

impl Rules for O200kRules {
    const SPLITS_CASE: bool = true;
    const SLASH_ENDS_LINE: bool = true;
}

/// The rules of GPT-3.5 and GPT-4.
#[derive(Debug)]
pub struct Cl100kRules;

impl Rules for Cl100kRules {
    const SPLITS_CASE: bool = false;
    const SLASH_ENDS_LINE: bool = false;
}

/// The end of the piece that begins at `start`, or `None` if a non-ASCII character has a say in it.
#[inline(always)]
pub(crate) fn piece_end<R: Rules>(bytes: &[u8], start: usize) -> Option<usize> {
    let window = &bytes[start..bytes.len().min(start + LONGEST_PIECE)];
    let first = window[0];
    let second = window.get(1).map_or(Class::End, |&byte| class(byte));
    let end = match class(first) {
        Class::Lower | Class::Upper => word_end::<R>(window, 0),
        Class::Digit => digits_end(window),
        Class::Punct => match second {
            Class::Lower | Class::Upper => {
                if !R::SPLITS_CASE && first == b'\'' && contraction_len(window) > 0 {
                    Some(contraction_len(window))
                } else {
                    word_end::<R>(window, 1)
                }
            }
            _ => punct_end::<R>(window, 1),
        },
        Class::Blank => match second {
            Class::Lower | Class::Upper => word_end::<R>(window, 1),
            Class::Punct if first == b' ' => punct_end::<R>(window, 2),
            Class::Digit => Some(1),
            _ => blank_end(bytes, start, window.len()),
        },
        Class::Newline => blank_end(bytes, start, window.len()),
        Class::Other | Class::End => None,
    };
    end.map(|end| start + end)
}

/// The end of a stretch that begins with a piece and holds non-ASCII text: the next certain cut.
///
/// A cut is certain before a blank that follows something visible, after a newline when neither
/// blank nor slash comes next, and between a CJK letter and CJK punctuation. No piece of either
/// vocabulary spans one of these.
pub(crate) fn stretch_end(text: &str, start: usize) -> usize {
    let rest = &text[start..];
    let mut previous = '\n';
    for (at, this) in rest.char_indices() {
        if at > 0 && (is_cut(previous, this) || at >= LONGEST_STRETCH) {
            return start + at;
        }
        previous = this;
    }
    text.len()
}

fn is_cut(previous: char, this: char) -> bool {
    match this {
        ' ' | '\t' => !previous.is_whitespace(),
        '、' | '。' | '，' | '：' | '；' | '！' | '？' | '（' | '）' => is_cjk_letter(previous),
        '/' => false,
        _ => previous == '\n' && !this.is_whitespace(),
    }
}

fn is_cjk_letter(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{ac00}'..='\u{d7a3}')
}

/// The end of a word whose letters begin at `at`.
#[inline(always)]
fn word_end<R: Rules>(window: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    if R::SPLITS_CASE {
        if window.get(at).is_some_and(u8::is_ascii_uppercase) {
            end = run_end::<b'A', b'Z', 0>(window, end);
        }
        end = run_end::<b'a', b'z', 0>(window, end);
    } else {
        end = run_end::<b'a', b'z', 0x20>(window, end);
    }
    let Some(&next) = window.get(end) else { return Some(end) };
    if next >= 0x80 {
        return None;
    }
    if R::SPLITS_CASE && next == b'\'' {
        end += contraction_len(&window[end..]);
    }
    Some(end)
}

/// The end of a run of bytes between `FIRST` and `LAST` once `FOLD` is set in them, eight at a time.
#[inline(always)]
fn run_end<const FIRST: u8, const LAST: u8, const FOLD: u8>(window: &[u8], mut at: usize) -> usize {
    loop {
        let outside = outside::<FIRST, LAST, FOLD>(load8(window, at));
        if outside != 0 {
            return at + (outside.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
}

const ONES: u64 = u64::MAX / 255;
/// The highest bit of every byte.
const HIGH: u64 = ONES * 0x80;

/// The highest bit of each byte that is not between `FIRST` and `LAST` once `FOLD` is set in it.
#[inline(always)]
fn outside<const FIRST: u8, const LAST: u8, const FOLD: u8>(word: u64) -> u64 {
    let low = (word | (ONES * FOLD as u64)) & !HIGH;
    let from_first = low + ONES * (0x80 - FIRST) as u64;
    let past_last = low + ONES * (0x7f - LAST) as u64;
    !(from_first & !past_last & !word) & HIGH
}

/// Sixteen bytes, the first ones lowest.
#[inline(always)]
pub(crate) fn load16(bytes: &[u8], at: usize) -> (u64, u64) {
    let chunk: &[u8; 16] = bytes[at..].first_chunk().expect("sixteen bytes");
    let both = u128::from_le_bytes(*chunk);
    (both as u64, (both >> 64) as u64)
}

/// Eight bytes, the first one lowest, with zeros after the end.
#[inline(always)]
pub(crate) fn load8(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(chunk) => u64::from_le_bytes(*chunk),
        None => load_last(bytes, at),
    }
}

#[cold]
#[inline(never)]
fn load_last(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take(8).rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// The length of `'s`, `'t`, `'re`, `'ve`, `'m`, `'ll` or `'d`, in either case, or zero.
#[inline]
fn contraction_len(window: &[u8]) -> usize {
    let at = |i: usize| window.get(i).map_or(0, |byte| byte | 0x20);
    match (at(1), at(2)) {
        (b's' | b't' | b'm' | b'd', _) => 2,
        (b'r' | b'v', b'e') | (b'l', b'l') => 3,
        _ => 0,
    }
}

#[inline(always)]
fn digits_end(window: &[u8]) -> Option<usize> {
    for at in 1..3 {
        match window.get(at) {
            Some(byte) if byte.is_ascii_digit() => {}
            Some(byte) if *byte >= 0x80 => return None,
            _ => return Some(at),
        }
    }
    Some(3)
}

/// The end of a run of punctuation that reaches at least to `at`, with the newlines after it.
#[inline(always)]
fn punct_end<R: Rules>(window: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    while window.get(end).is_some_and(|&byte| class(byte) == Class::Punct) {
        end += 1;
    }
    match window.get(end) {
        Some(byte) if *byte >= 0x80 => None,
        Some(b'\r' | b'\n') => {
            end += 1;
            while window.get(end).is_some_and(|&byte| is_line_end::<R>(byte)) {
                end += 1;
            }
            Some(end)
        }
        _ => Some(end),
    }
}

#[inline(always)]
fn is_line_end<R: Rules>(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r' || (R::SLASH_ENDS_LINE && byte == b'/')
}

/// The end of a piece of blanks and newlines: after its last newline, or else one blank short of
/// the next visible character, which takes that blank along.
#[inline(always)]
fn blank_end(bytes: &[u8], start: usize, window_len: usize) -> Option<usize> {
    let window = &bytes[start..start + window_len];
    let mut end = 0;
    let mut after_newline = 0;
    loop {
        end += (load8(window, end) ^ (u64::MAX / 255 * 0x20)).trailing_zeros() as usize / 8;
        match window.get(end).map_or(Class::End, |&byte| class(byte)) {
            Class::Newline => after_newline = end + 1,
            Class::Blank => {}
            Class::Other if begins_with_blank(&bytes[start + end..]) => return None,
            Class::End if after_newline == 0 => return Some(end),
            _ => break,
        }
        end += 1;
    }
    if after_newline > 0 {
        return Some(after_newline);
    }
    let is_alone_before_other = end == 1 && bytes[start + end] >= 0x80;
    if is_alone_before_other { None } else { Some(end.max(2) - 1) }
}

/// Whether the text begins with a blank that is not ASCII.
#[cold]
fn begins_with_blank(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(4)];
    let first = head.utf8_chunks().next().and_then(|chunk| chunk.valid().chars().next());
    first.is_some_and(char::is_whitespace)
}

/// What a byte is to the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Punct,
    Blank,
    Newline,
    Other,
    End,
}

#[inline(always)]
fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Punct; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' => Class::Lower,
            b'A'..=b'Z' => Class::Upper,
            b'0'..=b'9' => Class::Digit,
            b'\r' | b'\n' => Class::Newline,
            b' ' | b'\t' | 0x0b | 0x0c => Class::Blank,
            0x80.. => Class::Other,
            _ => Class::Punct,
        };
        byte += 1;
    }
    classes
};

#[cfg(test)]
mod tests {
    use super::*;

    fn check<R: Rules>(text: &str, pieces: &str) {
        let mut found = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let end = piece_end::<R>(text.as_bytes(), at).unwrap_or_else(|| stretch_end(text, at));
            found.push(&text[at..end]);
            at = end;
        }
        assert_eq!(found.join("|"), pieces);
    }

    #[test]
    fn the_header_is_true() {
        let text = "fn readAll(&self)\n  // don't";
        check::<O200kRules>(text, "fn| read|All|(&|self|)\n| | //| don't");
        check::<Cl100kRules>(text, "fn| readAll|(&|self|)\n| | //| don|'t");
    }

    #[test]
    fn contractions_go_with_their_word_or_alone() {
        check::<O200kRules>("I'LLx 'sam we're", "I'LL|x| '|sam| we're");
        check::<Cl100kRules>("I'LLx 'sam we're", "I|'LL|x| '|sam| we|'re");
        check::<Cl100kRules>("'sam", "'s|am");
    }

    #[test]
    fn digits_go_in_threes() {
        check::<O200kRules>("1234567 12", "123|456|7| |12");
    }

    #[test]
    fn a_slash_after_a_newline_stays_with_the_punctuation() {
        check::<O200kRules>(";\n/a\n/b", ";\n/|a|\n|/b");
        check::<Cl100kRules>(";\n/a\n/b", ";\n|/a|\n|/b");
    }

    #[test]
    fn blanks_leave_one_for_the_next_word() {
        check::<O200kRules>("a    b\t\tc \r\n  \n\td  ", "a|   | b|\t|\tc| \r\n  \n|\td|  ");
        check::<O200kRules>("  1  (", " | |1| | (");
    }

    #[test]
    fn other_characters_go_out_to_the_next_certain_cut() {
        check::<O200kRules>("to naïve’s end, a é\nb 你好，世界", "to| naïve’s| end|,| a| é\n|b| 你好|，世界");
        check::<O200kRules>("a   é  \u{3000} b", "a|  | é|  \u{3000} b");
    }
}
