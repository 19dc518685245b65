//! Runs the checks of the fuzz targets on inputs that once failed, from `fuzz/regressions/`.
//!
//! The checks of provider answers run on those of the scripted provider, intact and corrupted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(unreachable_pub, reason = "the fuzzer's own sources")]

#[path = "../../../fuzz/src/settings.rs"]
mod settings; // settings from one byte
#[path = "../../../fuzz/src/body.rs"]
mod body; //   checks of request bodies
#[path = "../../../fuzz/src/reply.rs"]
mod reply; //  checks of answers
#[path = "../../../fuzz/src/refusal.rs"]
mod refusal; // checks of errors

use std::fs;
use std::panic;
use std::path::Path;

use fanfold_testkit::Rng;
use fanfold_testkit::fakes::upstream;
use fanfold_testkit::generators::bodies::BodyFormat;
use fanfold_wire::Format;

#[test]
fn earlier_failures_stay_fixed() {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions");
    let mut n_checked = 0;
    let mut failed: Vec<String> = Vec::new();
    for format in Format::ALL {
        let Ok(directory) = fs::read_dir(all.join(format.to_string())) else { continue };
        for file in directory.map(|file| file.unwrap().path()) {
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let byte: u8 = name.split('-').next().and_then(|byte| byte.parse().ok()).unwrap();
            let data = [&[byte], &*fs::read(&file).unwrap()].concat();
            let result = panic::catch_unwind(|| body::check(&data, format));
            failed.extend(result.is_err().then(|| format!("{format}/{name}")));
            n_checked += 1;
        }
    }
    assert!(n_checked > 0 && failed.is_empty(), "{n_checked} checked, failed: {failed:#?}");
}

/// Corrupts bytes: changes, removes, inserts and repeats some.
fn corrupt(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
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
fn intact_and_corrupt_answers_do_not_depend_on_the_split() {
    let n_corrupt = if std::env::var_os("FANFOLD_MANY").is_some() { 2_000 } else { 20 };
    for (i, answer) in reply::seeds().iter().enumerate() {
        reply::check(answer);
        let mut rng = Rng::new(i as u64);
        for n in 0..n_corrupt {
            let corrupt = corrupt(answer, &mut rng);
            let result = panic::catch_unwind(|| reply::check(&corrupt));
            assert!(result.is_ok(), "answer {i}, variant {n}: {}", String::from_utf8_lossy(&corrupt));
        }
    }
}

#[test]
fn intact_and_corrupt_errors_are_parsed() {
    for kind in [BodyFormat::Anthropic, BodyFormat::Chat, BodyFormat::Responses] {
        let error = upstream::too_long_error(kind, 213_462, 200_000).to_string();
        let mut rng = Rng::new(error.len() as u64);
        for status in 0..10 {
            let whole = [&[status, 90], error.as_bytes()].concat();
            refusal::check(&whole);
            (0..50).for_each(|_| refusal::check(&corrupt(&whole, &mut rng)));
        }
    }
}
