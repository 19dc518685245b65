//! Guesses the tokens of a text from the shape of its words, with no vocabulary.
//!
//! ```text
//! prose, code   a word is a token up to seven letters, and a share of one for each more
//! dense         letters and digits without end (base64) are two tokens for three characters
//! CJK           three quarters of a token for each character
//! ```
//!
//! The costs are means over Rust, Python, Markdown and JSON, as o200k counts them.

use crate::split::{O200kRules, piece_end, stretch_end};

/// So many pieces in a row with nothing between them are no words.
const DENSE: usize = 6;

/// The tokens of a text, in thousandths.
pub(crate) fn thousandths(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut total = 0;
    let mut n_joined = 0;
    let mut start = 0;
    while start < bytes.len() {
        let Some(end) = piece_end::<O200kRules>(bytes, start) else {
            let end = stretch_end(text, start);
            total += text[start..end].chars().map(char_cost).sum::<u64>();
            n_joined = 0;
            start = end;
            continue;
        };
        n_joined = match bytes[start] {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => n_joined + 1,
            b'+' | b'/' if n_joined >= DENSE => n_joined,
            _ => 0,
        };
        total += piece_cost(&bytes[start..end], n_joined >= DENSE);
        start = end;
    }
    total
}

/// The cost of a piece of ASCII.
fn piece_cost(piece: &[u8], is_dense: bool) -> u64 {
    let first = piece[0];
    let second = piece.get(1).copied().unwrap_or_default();
    let is_word = first.is_ascii_alphabetic() || second.is_ascii_alphabetic();
    let is_capital = piece[piece.len() - 1].is_ascii_uppercase();
    if !is_word {
        return if first.is_ascii_digit() || piece.trim_ascii().is_empty() {
            1000 + 10 * (piece.len() as u64).saturating_sub(32)
        } else {
            of_length(&PUNCT, piece.trim_ascii().len(), 200)
        };
    }
    let n_letters = piece.len() - usize::from(!first.is_ascii_alphabetic());
    match (is_dense, is_capital) {
        (true, _) => (700 * n_letters as u64).max(1000),
        (false, true) => (200 + 300 * n_letters as u64).max(1000),
        (false, false) => of_length(&WORD, n_letters, 300),
    }
}

/// The cost of each length of word.
const WORD: [u64; 17] =
    [1000, 1000, 1040, 1040, 1110, 1110, 1130, 1170, 1350, 1380, 1440, 1450, 1620, 1630, 1640, 1660, 2200];

/// The cost of each length of punctuation.
const PUNCT: [u64; 9] = [1000, 1000, 1010, 1250, 1650, 2300, 2300, 2800, 2800];

fn of_length(costs: &[u64], len: usize, each_more: u64) -> u64 {
    match costs.get(len) {
        Some(cost) => *cost,
        None => costs[costs.len() - 1] + each_more * (len + 1 - costs.len()) as u64,
    }
}

/// The cost of a character near others that are not ASCII.
fn char_cost(c: char) -> u64 {
    match c {
        'a'..='z' | 'A'..='Z' => 250,
        ' ' | '\n' | '\r' | '\t' => 100,
        '\0'..='\x7f' => 700,
        '\u{80}'..='\u{24f}' => 500,    // Latin with accents
        '\u{250}'..='\u{6ff}' => 280,   // Greek, Cyrillic, Hebrew, Arabic
        '\u{700}'..='\u{10ff}' => 450,  // the scripts of India and South East Asia
        '\u{1100}'..='\u{1fff}' => 700, // others, rarer
        '\u{2000}'..='\u{2bff}' => 900, // signs, arrows, boxes
        '\u{3040}'..='\u{30ff}' => 600, // kana
        '\u{2c00}'..='\u{9fff}' => 750, // ideographs and their punctuation
        '\u{ac00}'..='\u{d7a3}' => 600, // Hangul
        '\u{a000}'..='\u{ffff}' => 900,
        '\u{10000}'.. => 2000, // emoji
    }
}

#[cfg(test)]
mod tests {
    use fanfold_core::Count;

    use super::*;
    use crate::{cl100k, o200k};

    const PROSE: &str = "\
A conversation with a coding agent grows with every file it reads and every command it runs. Sooner or \
later it no longer fits the model's window, and something has to go. Most programs drop the oldest \
messages, or ask the model for a summary and hope that nothing important is lost. Neither is kind to the \
person who wrote those messages: a constraint stated once, an hour ago, is exactly what disappears first. \
It isn't enough to keep what is recent; what matters is what will be needed, and nobody knows that yet.";

    const CJK: &str = "\
人工智能助手在阅读文件和运行命令时，对话会变得越来越长。最终它将超出模型的窗口，必须删除一些内容。\
大多数程序会丢弃最旧的消息，或者要求模型撰写摘要。ファイルを読むたびに会話は長くなります。古いメッセージを\
削除するだけでは、大切な情報が失われてしまいます。대화가 길어지면 모델의 창에 더 이상 맞지 않게 됩니다.";

    const RUSSIAN: &str = "\
Разговор с программой становится длиннее с каждым прочитанным файлом и каждой выполненной командой. Рано \
или поздно он перестаёт помещаться в окно модели, и тогда от чего-то приходится отказаться.";

    fn json() -> String {
        (0..40).fold(String::new(), |all, n| {
            all + &format!(
                "{{\"id\": \"call_{n}\", \"type\": \"function\", \"function\": {{\"name\": \"read_file\", \
                 \"arguments\": {{\"path\": \"src/module_{n}/mod.rs\", \"offset\": {}}}}}}},\n",
                n * 137
            )
        })
    }

    fn log() -> String {
        (0..40).fold(String::new(), |all, n| {
            all + &format!(
                "2026-11-15T04:{n:02}:17.{:03}Z INFO [worker-{n}] request finished in {}ms status=200\n",
                n * 23,
                n * 31
            )
        })
    }

    fn base64() -> String {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut state = 7u32;
        let next = |_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            alphabet[(state >> 26) as usize] as char
        };
        (0..2000).map(next).collect()
    }

    /// The guess must be within so many per cent of o200k.
    fn check(text: &str, percent: u64) {
        let (guess, real) = (thousandths(text) / 1000, o200k().count(text).0);
        assert!(guess.abs_diff(real) * 100 <= real * percent, "{guess} for {real} in {:?}", text.get(..40));
    }

    #[test]
    fn prose_code_and_logs_are_close() {
        check(PROSE, 10);
        check(include_str!("split.rs"), 10);
        check(include_str!("models.rs"), 10);
        check(&json(), 10);
        check(&log(), 10);
    }

    #[test]
    fn dense_and_cjk_text_are_near() {
        check(CJK, 15);
        check(&base64(), 15);
    }

    #[test]
    fn other_scripts_are_not_far() {
        check(RUSSIAN, 25);
        check("مرحبا بالعالم، هذه محادثة طويلة مع برنامج يقرأ الملفات.", 25);
        check("नमस्ते दुनिया, यह एक लंबी बातचीत है।", 25);
    }

    /// An unknown vocabulary is a factor away from o200k, and further from the shape.
    #[test]
    fn another_vocabulary_is_guessed_better_from_o200k() {
        let texts = [PROSE, include_str!("split.rs"), &json(), &log(), &base64()];
        let spread = |basis: &dyn Fn(&str) -> u64| {
            let ratios = texts.map(|text| cl100k().count(text).0 as f64 * 1000.0 / basis(text) as f64);
            ratios.iter().copied().fold(0.0, f64::max) / ratios.iter().copied().fold(9.0, f64::min)
        };
        let (by_o200k, by_shape) = (spread(&|text| o200k().count(text).0 * 1000), spread(&thousandths));
        assert!(by_o200k < 1.1 && by_o200k < by_shape, "{by_o200k} {by_shape}");
    }
}
