//! What the fuzzer found, by the check that found it: `fuzz/regressions/<format>/<how it is folded>-<what went wrong>.json`.
//! What it checks of answers is tried with those of the scripted provider, and with those gone wrong.

#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(unreachable_pub, reason = "the fuzzer's own sources")]

#[path = "../../../fuzz/src/choice.rs"]
mod choice; // how it is folded, from one byte
#[path = "../../../fuzz/src/body.rs"]
mod body; //   what must hold
#[path = "../../../fuzz/src/reply.rs"]
mod reply; //  what must hold of answers
#[path = "../../../fuzz/src/refusal.rs"]
mod refusal; // and of errors

use std::fs;
use std::panic;
use std::path::Path;

use fanfold_testkit::Rng;
use fanfold_testkit::bodies::Kind;
use fanfold_testkit::upstream;
use fanfold_wire::Format;

#[test]
fn what_was_found_stays_mended() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions");
    let mut n_checked = 0;
    let mut broken: Vec<String> = Vec::new();
    for format in Format::ALL {
        let Ok(directory) = fs::read_dir(all.join(format.to_string())) else { continue };
        for file in directory.map(|file| file.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let byte: u8 = name.split('-').next().and_then(|byte| byte.parse().ok()).unwrap();
            let data = [&[byte], &*fs::read(&file).unwrap()].concat();
            let told = panic::catch_unwind(|| body::check(&data, format));
            broken.extend(told.is_err().then(|| format!("{format}/{name}")));
            n_checked += 1;
        }
    }
    assert!(n_checked > 0 && broken.is_empty(), "{n_checked} checked, broken: {broken:#?}");
}

/// Some bytes gone: changed, cut out, said twice.
fn spoilt(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=rng.below(3) {
        let at = 1 + rng.below(bytes.len().max(2) - 1);
        let end = (at + rng.below(40)).min(bytes.len());
        match rng.below(5) {
            0 if at < bytes.len() => bytes[at] = rng.number() as u8,
            1 => drop(bytes.drain(at.min(end)..end)),
            2 => bytes.truncate(at),
            3 => {
                let again = bytes[at.min(end)..end].to_vec();
                bytes.splice(at.min(end)..at.min(end), again);
            }
            _ => bytes.insert(at.min(bytes.len()), b"\n\r\0\"\\{"[rng.below(6)]),
        }
    }
    bytes
}

#[test]
fn answers_and_what_is_left_of_them_pass_whatever_the_split() {
    let n_spoilt = if std::env::var_os("FANFOLD_MANY").is_some() { 2_000 } else { 20 };
    for (i, answer) in reply::seeds().iter().enumerate() {
        reply::check(answer);
        let mut rng = Rng::new(i as u64);
        for n in 0..n_spoilt {
            let spoilt = spoilt(answer, &mut rng);
            let told = panic::catch_unwind(|| reply::check(&spoilt));
            assert!(told.is_ok(), "answer {i}, {n} times spoilt: {}", String::from_utf8_lossy(&spoilt));
        }
    }
}

#[test]
fn errors_are_read_whatever_they_hold() {
    for kind in [Kind::Anthropic, Kind::Chat, Kind::Responses] {
        let error = upstream::refusal(kind, 213_462, 200_000).to_string();
        let mut rng = Rng::new(error.len() as u64);
        for status in 0..10 {
            let whole = [&[status, 90], error.as_bytes()].concat();
            refusal::check(&whole);
            (0..50).for_each(|_| refusal::check(&spoilt(&whole, &mut rng)));
        }
    }
}
