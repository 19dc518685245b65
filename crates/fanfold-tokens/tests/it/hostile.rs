//! Text made to be slow is counted in time.

use std::time::{Duration, Instant};

use fanfold_core::{Count, Tokens};
use fanfold_tokens::{cl100k, o200k};

const MEGABYTE: usize = 1_000_000;

/// Checks that each token has `fewest` to `most` bytes on average.
fn check(text: &str, fewest: usize, most: usize) {
    for counter in [o200k() as &dyn Count, cl100k()] {
        let start = Instant::now();
        let count = counter.count(text);
        assert!(start.elapsed() < Duration::from_secs(5), "{:?} in {}", start.elapsed(), counter.name());
        let expected = Tokens((text.len() / most) as u64)..=Tokens((text.len() / fewest) as u64);
        assert!(expected.contains(&count), "{count} in {}", counter.name());
    }
}

#[test]
fn a_megabyte_of_one_letter() {
    check(&"a".repeat(MEGABYTE), 1, 64);
    check(&"é".repeat(MEGABYTE / 2), 1, 64);
}

#[test]
fn a_megabyte_of_blanks() {
    check(&" ".repeat(MEGABYTE), 4, 200);
    check(&"\t\n".repeat(MEGABYTE / 2), 1, 200);
    check(&format!("{}é", " ".repeat(MEGABYTE)), 4, 200);
    check(&" \u{3000}".repeat(MEGABYTE / 4), 1, 200);
    check(&format!("{}\u{3000}", " ".repeat(MEGABYTE)), 4, 200);
}

#[test]
fn a_megabyte_of_punctuation() {
    check(&"=".repeat(MEGABYTE), 4, 200);
    check(&format!("{}→", "-".repeat(MEGABYTE)), 4, 200);
    check(&"/\n".repeat(MEGABYTE / 2), 1, 16);
    check(&"'".repeat(MEGABYTE), 1, 64);
}

#[test]
fn a_megabyte_of_random_letters() {
    let mut state = 7u32;
    let letters: String = (0..MEGABYTE).map(|_| (b'a' + next(&mut state) as u8 % 26) as char).collect();
    check(&letters, 1, 4);
    check(&format!("{letters}é"), 1, 4);
    check(&letters.to_uppercase(), 1, 4);
}

#[test]
fn a_megabyte_of_random_ideographs() {
    let mut state = 7u32;
    let ideographs = (0..MEGABYTE / 3).filter_map(|_| char::from_u32(0x4e00 + next(&mut state) % 20_000));
    check(&ideographs.collect::<String>(), 1, 4);
}

fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}
