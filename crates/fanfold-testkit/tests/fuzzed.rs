//! What the fuzzer found, by the check that found it: `fuzz/regressions/<format>/<how it is folded>-<what went wrong>.json`.

#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(unreachable_pub, reason = "the fuzzer's own sources")]

#[path = "../../../fuzz/src/choice.rs"]
mod choice; // how it is folded, from one byte
#[path = "../../../fuzz/src/body.rs"]
mod body; //   what must hold

use std::fs;
use std::panic;
use std::path::Path;

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
