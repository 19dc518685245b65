//! Compares the results of `fanfold replay` with those of the yardstick, an independent implementation.
//!
//! The yardstick is next to the recorded conversations, in `../tools/replay`. The test is skipped if it is missing
//! or cannot run.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::sandbox::Sandbox;

/// The columns: the yardstick's name and the path in our JSON. The sizes of recalls differ, because `pipe` marks originals
/// for searching by an estimate of their size.
const COLUMNS: [(&str, &str); 22] = [
    ("trajectories", "/trajectories"),
    ("calls", "/sums/calls"),
    ("pressed", "/sums/pressed/calls"),
    ("exceed", "/sums/over"),
    ("invalid", "/sums/invalid"),
    ("tokens_sum", "/sums/sent"),
    ("tokens_pressed", "/shares/tokens_pressed"),
    ("peak", "/sums/peak"),
    ("billed_a", "/sums/billed_a"),
    ("billed_o", "/sums/billed_o"),
    ("rewrites", "/sums/rewrites"),
    ("recall", "/shares/recall"),
    ("old", "/shares/old"),
    ("old_bare", "/shares/old_bare"),
    ("old_macro", "/shares/old_macro"),
    ("old_rec", "/shares/old_rec"),
    ("early_old", "/shares/early_old"),
    ("tool_only", "/shares/tool_only"),
    ("lines", "/shares/lines"),
    ("suff", "/shares/suff"),
    ("old_suff", "/shares/old_suff"),
    ("user", "/shares/user"),
];

fn folder() -> PathBuf {
    match std::env::var_os("FANFOLD_TRAJECTORIES") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/trajectories"),
    }
}

#[test]
fn figures_match_the_yardstick() {
    let folder = folder();
    let script = folder.join("../tools/replay/replay.py");
    let imports = ["-c", "import tiktoken, importlib.util as u; assert u.find_spec('litellm')"];
    let can_run = Command::new("python3").args(imports).output().is_ok_and(|ran| ran.status.success());
    if !script.is_file() || !can_run {
        eprintln!(
            "skipped: {} is missing, or python3, tiktoken or litellm is not installed",
            script.display()
        );
        return;
    }
    let sandbox = Sandbox::new();
    let data: Vec<PathBuf> = ["entire", "livemcp", "mini-swe", "tau-airline"]
        .iter()
        .map(|name| folder.join(format!("{name}.jsonl.gz")))
        .collect();
    for policy in ["fanfold", "mask"] {
        let ours = sandbox
            .command()
            .args(["replay", "--json", "--max", "3", "--policy", policy, "--window", "8k", "16k"])
            .args(["--cadence", "window", "--"])
            .args(&data)
            .output()
            .unwrap();
        let ours: Value = serde_json::from_slice(&ours.stdout).unwrap();
        let out = sandbox.path("theirs.json");
        let pipe = format!("{} pipe --policy {policy}", assert_cmd::cargo::cargo_bin("fanfold").display());
        let ran = Command::new("python3")
            .arg(&script)
            .arg("--data")
            .args(&data)
            .args(["--max", "3", "--window", "8000", "16000", "--expand", "--cmd", &pipe, "--out"])
            .arg(&out)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .output()
            .unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        // Python writes NaN, which is not JSON.
        let theirs = std::fs::read_to_string(&out).unwrap().replace("NaN", "null");
        let theirs: Value = serde_json::from_str(&theirs).unwrap();
        for (ours, theirs) in
            ours["summary"].as_array().unwrap().iter().zip(theirs["summary"].as_array().unwrap())
        {
            check_row(ours, theirs);
        }
    }
}

fn check_row(ours: &Value, theirs: &Value) {
    for (name, place) in COLUMNS {
        let ours_value = ours.pointer(place).and_then(Value::as_f64);
        let theirs_value = theirs[name].as_f64();
        let is_near = match (ours_value, theirs_value) {
            (Some(ours_value), Some(theirs_value)) => {
                (ours_value - theirs_value).abs() <= 0.005 * theirs_value.abs()
            }
            (ours_value, theirs_value) => ours_value.is_none() && theirs_value.is_none(),
        };
        assert!(is_near, "{name} at {}: {ours_value:?} is not {theirs_value:?}", ours["window"]);
    }
}
