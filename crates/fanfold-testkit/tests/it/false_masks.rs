//! Masks in recorded conversations, which contain no secrets.

#![allow(clippy::print_stdout, reason = "a test prints its measurements")]

use std::collections::BTreeMap;

use fanfold_redact::find_secrets;
use fanfold_testkit::trajectories::trajectories;
use serde_json::Value;

/// Maximum number of masks per MB of text.
const MAX_PER_MB: f64 = 1.0;

#[test]
fn recordings_have_few_false_masks() {
    let Some(trajectories) = trajectories() else { return };
    let mut sources: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for trajectory in &trajectories {
        let (n_bytes, n_masks) = sources.entry(&trajectory.source).or_default();
        for message in &trajectory.messages {
            let message = serde_json::from_str(message.get()).expect("a message is JSON");
            each_text(&message, &mut |text| {
                *n_bytes += text.len();
                for secret in find_secrets(text) {
                    *n_masks += 1;
                    let line = text[..secret.range.start].rfind('\n').map_or(0, |at| at + 1);
                    let before: String = text[line..secret.range.start].chars().rev().take(60).collect();
                    let before: String = before.chars().rev().collect();
                    println!("{} {}: {before}>>>{}<<<", trajectory.source, secret.kind, &text[secret.range]);
                }
            });
        }
    }
    println!("recording,bytes,masks,masks per MB");
    let per_mb = |(n_bytes, n_masks): (usize, usize)| n_masks as f64 / (n_bytes as f64 / 1e6);
    for (source, counts) in &sources {
        println!("{source},{},{},{:.2}", counts.0, counts.1, per_mb(*counts));
    }
    let total = sources.values().fold((0, 0), |sum, counts| (sum.0 + counts.0, sum.1 + counts.1));
    println!("all,{},{},{:.2}", total.0, total.1, per_mb(total));
    assert!(per_mb(total) <= MAX_PER_MB, "{:.2} masks per MB", per_mb(total));
}

/// Visits every string of a value.
fn each_text(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, visit)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
