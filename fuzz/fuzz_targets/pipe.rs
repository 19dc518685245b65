//! Requests to `fanfold pipe` and their answers.
//!
//! The program has no library, so its modules are included here, and two files in memory replace stdin and stdout.
//! No process is started, so a run takes well under a millisecond.

#![no_main]
#![allow(dead_code, reason = "the modules contain all commands of the program")]

#[path = "../../crates/fanfold-cli/src/cli.rs"]
mod cli;
#[path = "../../crates/fanfold-cli/src/commands/mod.rs"]
mod commands;
#[path = "../../crates/fanfold-cli/src/failure.rs"]
mod failure;
#[path = "../../crates/fanfold-cli/src/files/mod.rs"]
mod files;
#[path = "../../crates/fanfold-cli/src/report/mod.rs"]
mod report;
#[path = "../../crates/fanfold-cli/src/settings/mod.rs"]
mod settings;
#[path = "../../crates/fanfold-cli/src/setup/mod.rs"]
mod setup;
#[path = "../../crates/fanfold-cli/src/store.rs"]
mod store;
#[path = "../../crates/fanfold-cli/src/terminal/mod.rs"]
mod terminal;

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::sync::{LazyLock, Mutex};

use clap::Parser as _;
use fanfold_fuzz::mutate;
use fanfold_fuzz::settings::policy_name;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::cli::Cli;
use crate::commands::{Command, pipe};
use crate::settings::Options;
use crate::terminal::Reporter;

fuzz_target!(|data: &[u8]| check(data));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::lines(data, size, max_size, seed)
});

/// An answer. Its messages stay unparsed, because they may contain half a surrogate pair.
#[derive(serde::Deserialize)]
struct Answer<'a> {
    #[serde(borrow, default)]
    messages: Option<&'a RawValue>,
    #[serde(default)]
    handles: Vec<Value>,
    #[serde(default)]
    report: Value,
    #[serde(default)]
    error: Value,
    content: Option<String>,
}

/// Checks that every line has one answer, no answer reports a fault, every handle can be recalled, and recalls do
/// not change the answers.
fn check(data: &[u8]) {
    let Some((&byte, input)) = data.split_first() else { return };
    let lines: Vec<&[u8]> =
        input.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    let output = run(byte, &lines.join(&b'\n'));
    let answers = answers(&output);
    assert_eq!(answers.len(), lines.len(), "an answer for each line");
    let mut probed: Vec<Vec<u8>> = Vec::new();
    let mut is_probe = Vec::new();
    for (line, answer) in lines.iter().zip(&answers) {
        probed.push(line.to_vec());
        is_probe.push(false);
        for probe in probes(line, answer) {
            probed.push(probe.into_bytes());
            is_probe.push(true);
        }
    }
    if probed.len() == lines.len() {
        return;
    }
    let output = run(byte, &probed.join(&b'\n'));
    let mut before = answers.iter();
    for (again, is_probe) in self::answers(&output).iter().zip(is_probe) {
        if is_probe {
            assert!(again.content.is_some(), "cannot recall a handle: {}", again.error);
        } else {
            let before = before.next().expect("an answer for each line");
            assert_eq!(without_line_number(before), without_line_number(again), "a recall changed an answer");
        }
    }
}

/// The contents of an answer except the line number of an error.
fn without_line_number<'a>(
    answer: &'a Answer<'_>,
) -> (Option<&'a str>, &'a [Value], &'a Value, Value, Option<&'a str>) {
    let mut error = answer.error.clone();
    if let Some(error) = error.as_object_mut() {
        error.shift_remove("line");
    }
    let messages = answer.messages.map(RawValue::get);
    (messages, &answer.handles, &answer.report, error, answer.content.as_deref())
}

/// Requests that recall every handle of an answer.
fn probes(line: &[u8], answer: &Answer<'_>) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct SessionField<'a> {
        #[serde(borrow)]
        session: Option<&'a RawValue>,
    }
    let session = serde_json::from_slice::<SessionField<'_>>(line).ok().and_then(|field| field.session);
    let session = session.map_or("null", RawValue::get);
    let ids = answer.handles.iter().filter_map(|handle| handle.get("id")?.as_str());
    ids.map(|id| format!(r#"{{"session":{session},"op":"recall","handle":"{id}"}}"#)).collect()
}

fn answers(output: &str) -> Vec<Answer<'_>> {
    let mut answers = Vec::new();
    for line in output.lines() {
        let answer: Answer<'_> = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let fault = answer.report.get("fault");
        assert!(fault.is_none(), "broken invariant: {fault:?}");
        answers.push(answer);
    }
    answers
}

/// The files that replace stdin and stdout.
struct StdioFiles {
    input: File,
    output: File,
}

/// Stdin and stdout belong to the process, so only one run at a time uses them.
static STDIO: LazyLock<Mutex<StdioFiles>> = LazyLock::new(|| {
    let file =
        |name| File::from(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::empty()).expect("a file"));
    let files = StdioFiles { input: file("input"), output: file("output") };
    rustix::stdio::dup2_stdin(&files.input).expect("stdin");
    rustix::stdio::dup2_stdout(&files.output).expect("stdout");
    Mutex::new(files)
});

fn run(byte: u8, input: &[u8]) -> String {
    let mut files = STDIO.lock().expect("no run panicked");
    files.input.set_len(0).expect("a file in memory");
    files.input.rewind().expect("a file in memory");
    files.input.write_all(input).expect("a file in memory");
    files.input.rewind().expect("a file in memory");
    files.output.set_len(0).expect("a file in memory");
    files.output.rewind().expect("a file in memory");
    let is_incremental = byte >= 128;
    let arguments: &[&str] =
        if is_incremental { &["fanfold", "pipe", "--incremental"] } else { &["fanfold", "pipe"] };
    let Command::Pipe(args) = Cli::try_parse_from(arguments).expect("arguments").command else {
        unreachable!("the command is pipe");
    };
    let options = Options { policy: Some(policy_name(byte.into()).to_owned()), ..Options::default() };
    pipe::run(&args, &options, Reporter { is_quiet: true }).unwrap_or_else(|failure| panic!("{failure}"));
    let mut output = String::new();
    files.output.rewind().expect("a file in memory");
    files.output.read_to_string(&mut output).expect("UTF-8");
    output
}
