//! Lines into `fanfold pipe`, answers out of it.
//!
//! The program has no library, so its modules are built in here as they are, and what it reads and writes are two files
//! in memory in the place of stdin and stdout. Nothing is started, so a run takes well under a millisecond.

#![no_main]
#![allow(dead_code, reason = "the other commands of the program are built, too")]

#[path = "../../crates/fanfold-cli/src/choose.rs"]
mod choose;
#[path = "../../crates/fanfold-cli/src/commands/mod.rs"]
mod commands;
#[path = "../../crates/fanfold-cli/src/explain.rs"]
mod explain;
#[path = "../../crates/fanfold-cli/src/failure.rs"]
mod failure;
#[path = "../../crates/fanfold-cli/src/file_limit.rs"]
mod file_limit;
#[path = "../../crates/fanfold-cli/src/flags/mod.rs"]
mod flags;
#[path = "../../crates/fanfold-cli/src/input.rs"]
mod input;
#[path = "../../crates/fanfold-cli/src/log.rs"]
mod log;
#[path = "../../crates/fanfold-cli/src/output.rs"]
mod output;
#[path = "../../crates/fanfold-cli/src/picture.rs"]
mod picture;
#[path = "../../crates/fanfold-cli/src/progress.rs"]
mod progress;
#[path = "../../crates/fanfold-cli/src/report_json.rs"]
mod report_json;
#[path = "../../crates/fanfold-cli/src/rules_file.rs"]
mod rules_file;
#[path = "../../crates/fanfold-cli/src/settings/mod.rs"]
mod settings;
#[path = "../../crates/fanfold-cli/src/store.rs"]
mod store;
#[path = "../../crates/fanfold-cli/src/summaries.rs"]
mod summaries;
#[path = "../../crates/fanfold-cli/src/terminal.rs"]
mod terminal;

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::sync::{LazyLock, Mutex};

use clap::Parser as _;
use fanfold_fuzz::choice::policy_name;
use fanfold_fuzz::mutate;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::commands::{Say, pipe};
use crate::flags::{Cli, Command};
use crate::settings::Options;

fuzz_target!(|data: &[u8]| check(data));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::lines(data, size, max_size, seed)
});

/// An answer, with its messages as they are: they may hold what is no text of Rust's, such as half a surrogate pair.
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

/// Every line has one answer, no answer breaks a promise, every handle opens, and looking changes nothing.
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
            assert!(again.content.is_some(), "a handle does not open: {}", again.error);
        } else {
            let before = before.next().expect("an answer for each line");
            assert_eq!(told(before), told(again), "it matters that somebody recalled");
        }
    }
}

/// All that an answer says but the number of its line.
fn told<'a>(
    answer: &'a Answer<'_>,
) -> (Option<&'a str>, &'a [Value], &'a Value, Value, Option<&'a str>) {
    let mut error = answer.error.clone();
    if let Some(error) = error.as_object_mut() {
        error.shift_remove("line");
    }
    let messages = answer.messages.map(RawValue::get);
    (messages, &answer.handles, &answer.report, error, answer.content.as_deref())
}

/// Recalls of all that an answer has handles for.
fn probes(line: &[u8], answer: &Answer<'_>) -> Vec<String> {
    #[derive(serde::Deserialize)]
    struct Of<'a> {
        #[serde(borrow)]
        session: Option<&'a RawValue>,
    }
    let session = serde_json::from_slice::<Of<'_>>(line).ok().and_then(|of| of.session);
    let session = session.map_or("null", RawValue::get);
    let ids = answer.handles.iter().filter_map(|handle| handle.get("id")?.as_str());
    ids.map(|id| format!(r#"{{"session":{session},"op":"recall","handle":"{id}"}}"#)).collect()
}

fn answers(output: &str) -> Vec<Answer<'_>> {
    let mut answers = Vec::new();
    for line in output.lines() {
        let answer: Answer<'_> =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let fault = answer.report.get("fault");
        assert!(fault.is_none(), "a promise is broken: {fault:?}");
        answers.push(answer);
    }
    answers
}

/// What the program reads and writes.
struct Ends {
    input: File,
    output: File,
}

/// Stdin and stdout are one each, so one run goes on at a time.
static ENDS: LazyLock<Mutex<Ends>> = LazyLock::new(|| {
    let file =
        |name| File::from(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::empty()).expect("a file"));
    let ends = Ends { input: file("input"), output: file("output") };
    rustix::stdio::dup2_stdin(&ends.input).expect("stdin");
    rustix::stdio::dup2_stdout(&ends.output).expect("stdout");
    Mutex::new(ends)
});

fn run(byte: u8, input: &[u8]) -> String {
    let mut ends = ENDS.lock().expect("no run panicked");
    ends.input.set_len(0).expect("a file in memory");
    ends.input.rewind().expect("a file in memory");
    ends.input.write_all(input).expect("a file in memory");
    ends.input.rewind().expect("a file in memory");
    ends.output.set_len(0).expect("a file in memory");
    ends.output.rewind().expect("a file in memory");
    let is_incremental = byte >= 128;
    let arguments: &[&str] =
        if is_incremental { &["fanfold", "pipe", "--incremental"] } else { &["fanfold", "pipe"] };
    let Command::Pipe(args) = Cli::try_parse_from(arguments).expect("arguments").command else {
        unreachable!("the command is pipe");
    };
    let options = Options { policy: Some(policy_name(byte.into()).to_owned()), ..Options::default() };
    pipe::run(&args, &options, Say { is_quiet: true }).expect("a pipe that goes on");
    let mut output = String::new();
    ends.output.rewind().expect("a file in memory");
    ends.output.read_to_string(&mut output).expect("UTF-8");
    output
}
