//! Secrets in every setting: the corpus of fanfold-redact, and a conversation that the program exports.

use std::process::Command;

use anyhow::Context as _;
use fanfold_testkit::Rng;
use serde_json::{Value, json};

use super::Trial;
use super::sandbox::Sandbox;
use super::table::Row;
use crate::bench::run_command;

const CORPUS: &str = "redaction: the corpus";
const EXPORT: &str = "redaction: exported conversations";
const LEAST_RECALL: f64 = 0.98;
const TARGET: &str = "recall ≥ 0.98 in every setting";

pub(super) fn run(trial: &Trial) -> anyhow::Result<Vec<Row>> {
    Ok(vec![Row::from_result(CORPUS, corpus(trial)), Row::from_result(EXPORT, export(trial))])
}

/// Runs the corpus: every kind of secret in every context and setting.
fn corpus(trial: &Trial) -> anyhow::Result<Row> {
    let (seed, cases) = (trial.seed.to_string(), trial.tries(510, 5_100).to_string());
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(crate::tidy::root()).args([
        "run",
        "--quiet",
        "-p",
        "fanfold-redact",
        "--example",
        "recall",
    ]);
    let table = run_command(cargo.args(["--", "--seed", &seed, "--cases", &cases]))?;
    count_corpus(&table)
}

/// Reads the table `setting,secrets,masked,recall`.
fn count_corpus(table: &str) -> anyhow::Result<Row> {
    let mut recalls = Vec::new();
    for line in table.lines().skip(1) {
        let mut cells = line.split(',');
        let setting = cells.next().unwrap_or_default();
        let mut number = || cells.next().and_then(|cell| cell.parse::<usize>().ok());
        let (secrets, masked) = number().zip(number()).with_context(|| format!("no figures in {line}"))?;
        recalls.push(Recall { setting, n_secrets: secrets, n_masked: masked });
    }
    anyhow::ensure!(!recalls.is_empty(), "the corpus printed no figures");
    Ok(judge(CORPUS, &recalls))
}

/// The masked secrets of one setting.
struct Recall<'a> {
    setting: &'a str,
    n_secrets: usize,
    n_masked: usize,
}

impl Recall<'_> {
    fn share(&self) -> f64 {
        self.n_masked as f64 / self.n_secrets.max(1) as f64
    }
}

fn judge(name: &str, recalls: &[Recall<'_>]) -> Row {
    let mut row = Row::new(name, TARGET);
    for recall in recalls {
        row.n_tries += recall.n_secrets;
        if recall.share() < LEAST_RECALL {
            row.fail(format!("{}: {} of {} are masked", recall.setting, recall.n_masked, recall.n_secrets));
        }
    }
    if let Some(lowest) = recalls.iter().min_by(|a, b| a.share().total_cmp(&b.share())) {
        row.figure =
            format!("{} settings, lowest recall {:.3} ({})", recalls.len(), lowest.share(), lowest.setting);
    }
    row
}

/// A name, and the text around a secret.
type Setting = (&'static str, fn(&str) -> String);

/// Settings of secrets in tool results and in arguments of calls.
const SETTINGS: [Setting; 6] = [
    ("plain", |key| format!("the token is here: {key} and more")),
    ("coloured", |key| format!("token \u{1b}[32m{key}\u{1b}[0m")),
    ("quoted", |key| format!("const TOKEN = \"{key}\";")),
    ("JSON-escaped", |key| format!("{{\"line\":\"\\u5bc6\\u7801{key}\\n\"}}")),
    ("prefixed", |key| format!("conf/app.env:12:TOKEN={key}")),
    ("escaped colour", |key| format!("\\u001b[32m{key}\\u001b[0m")),
];

/// Stores secrets in results and arguments of calls, and looks for them in a ShareGPT export.
fn export(trial: &Trial) -> anyhow::Result<Row> {
    let sandbox = Sandbox::new(trial, "redaction")?;
    let mut rng = Rng::new(trial.seed);
    let mut messages = vec![json!({ "role": "user", "content": "Look for keys." })];
    let mut keys = Vec::new();
    for n in 0..trial.tries(2, 20) {
        for (setting, place) in SETTINGS {
            for key in keys_of_all_kinds(&mut rng) {
                let id = format!("call_{}", keys.len());
                let is_argument = n % 2 == 1;
                let (arguments, result) = if is_argument {
                    (format!("{{\"command\":{}}}", escaped(&place(&key))), String::new())
                } else {
                    ("{}".to_owned(), place(&key))
                };
                let calls = json!([{ "id": id, "type": "function", "function": { "name": "bash", "arguments": arguments } }]);
                messages.push(json!({ "role": "assistant", "content": null, "tool_calls": calls }));
                messages.push(json!({ "role": "tool", "tool_call_id": id, "content": result }));
                keys.push((setting, key));
            }
        }
    }
    sandbox.write("chat.json", json!({ "model": "gpt-4o", "messages": messages }).to_string())?;
    let stored = sandbox.run("fold --session s chat.json -w 1m --store x.db -o out.json")?;
    let exported = sandbox.run("sessions export s -f sharegpt --store x.db")?;
    anyhow::ensure!(
        stored.is_ok() && exported.is_ok(),
        "no export: {}{}",
        stored.err_text(),
        exported.err_text()
    );
    let text = exported.out_text();
    let recalls = SETTINGS.map(|(setting, _)| {
        let of_setting: Vec<_> = keys.iter().filter(|(name, _)| *name == setting).collect();
        let n_masked = of_setting.iter().filter(|(_, key)| !text.contains(key)).count();
        Recall { setting, n_secrets: of_setting.len(), n_masked }
    });
    Ok(judge(EXPORT, &recalls))
}

/// A JSON string with `\u` escapes for all letters outside ASCII, as Python writes it.
fn escaped(text: &str) -> String {
    let text = Value::from(text).to_string();
    text.chars().map(|c| if c.is_ascii() { c.to_string() } else { format!("\\u{:04x}", c as u32) }).collect()
}

/// One key of each of some well-known kinds.
fn keys_of_all_kinds(rng: &mut Rng) -> Vec<String> {
    const ALL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const BASE_32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    const DIGITS: &[u8] = b"0123456789";
    let mut random = |n: usize, from: &[u8]| -> String {
        (0..n).map(|_| char::from(from[rng.below(from.len())])).collect()
    };
    vec![
        format!("ghp_{}", random(36, ALL)),
        format!("glpat-{}", random(20, ALL)),
        format!("sk-ant-api03-{}", random(93, ALL)),
        format!("AIza{}", random(35, ALL)),
        format!("AKIA{}", random(16, BASE_32)),
        format!("npm_{}", random(36, ALL)),
        format!("xoxb-{}-{}-{}", random(12, DIGITS), random(13, DIGITS), random(24, ALL)),
        format!("sk_live_{}", random(24, ALL)),
    ]
}

#[cfg(test)]
mod tests {
    use super::{count_corpus, escaped};

    #[test]
    fn low_recall_in_one_setting_is_a_failure() {
        let table = "setting,secrets,masked,recall\nplain,100,99,0.9900\ncoloured,100,97,0.9700\n";
        let row = count_corpus(table).expect("it is a table");
        assert_eq!((row.n_tries, row.n_failures()), (200, 1));
        assert_eq!(row.figure, "2 settings, lowest recall 0.970 (coloured)");
        assert!(count_corpus("setting,secrets,masked,recall\n").is_err());
    }

    #[test]
    fn letters_are_escaped_as_python_escapes_them() {
        assert_eq!(escaped("密\"x"), r#""\u5bc6\"x""#);
    }
}
