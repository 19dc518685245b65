//! Actions of shell commands: reading with `sed`, searching with `rg`, writing with a heredoc, running tests.

use std::sync::LazyLock;

use regex::Regex;

use crate::actions::path::{join, normal};
use crate::actions::shell::{ShellCommand, split};
use crate::actions::{Action, FileRead, LineRange, ReadLines, Verb};
use crate::text::words::one_line;

/// The action of a command that is run in a directory, if that is known.
pub(super) fn parse_command(command: &str, directory: Option<&str>) -> Action {
    parse_nested_command(command, directory, 0)
}

fn parse_nested_command(command: &str, directory: Option<&str>, depth: usize) -> Action {
    let mut directory = directory.map(normal);
    let mut actions: Vec<Action> = Vec::new();
    let mut sources: Vec<String> = Vec::new();
    let commands = split(command);
    let hides_exit_code = commands.last().is_some_and(|last| last.is_piped || is_idle(&bare(&last.words)));
    for pipeline in commands.chunk_by(|_, next| next.is_piped) {
        let words = bare(&pipeline[0].words);
        if let ["cd", to, ..] = words.as_slice() {
            directory = Some(join(directory.as_deref(), to));
            continue;
        }
        let is_idle = is_idle(&words) && pipeline.iter().all(|command| command.writes.is_empty());
        if is_idle {
            continue;
        }
        if let (true, Some(inner)) = (depth < 3, inner_command(&words)) {
            return parse_nested_command(inner, directory.as_deref(), depth + 1);
        }
        let action = parse_pipeline(pipeline, directory.as_deref());
        if action.verb != Verb::Write {
            sources.push(pipeline_text(pipeline));
        }
        actions.push(action);
    }
    let mut whole = Action::new(Verb::Run, sources.join(" && "));
    if whole.target.is_empty() {
        whole.target = one_line(command).into_owned();
    }
    whole.hides_exit_code = hides_exit_code;
    whole.changes = crate::actions::patch::changed_files(command);
    if !whole.changes.is_empty() {
        whole.verb = Verb::Edit;
        whole.target = whole.changes[0].clone();
        return whole;
    }
    let is_one_kind = actions.windows(2).all(|two| two[0].verb == two[1].verb);
    if actions.len() == 1 || (is_one_kind && !actions.is_empty() && actions[0].verb != Verb::Run) {
        let mut actions = actions.into_iter();
        let Some(mut first) = actions.next() else { return whole };
        first.hides_exit_code = hides_exit_code;
        for other in actions {
            first.has_more |= first.target != other.target || first.scope != other.scope;
            first.reads.extend(other.reads);
            first.changes.extend(other.changes);
        }
        return first;
    }
    whole.heredoc_hash = commands
        .iter()
        .filter_map(|command| command.heredoc_hash)
        .reduce(|one, other| one.rotate_left(1) ^ other);
    for action in actions {
        whole.reads.extend(action.reads);
        whole.changes.extend(action.changes);
        whole.is_test |= action.is_test;
    }
    whole
}

/// The inner command of `bash -lc "…"`.
fn inner_command<'a>(words: &[&'a str]) -> Option<&'a str> {
    let [shell, flag, command, ..] = words else { return None };
    let is_shell = matches!(base(shell), "bash" | "sh" | "zsh" | "dash");
    let is_command_flag = flag.starts_with('-') && flag.ends_with('c') && flag.len() <= 5;
    (is_shell && is_command_flag).then_some(*command)
}

/// Removes words that only wrap the command: `sudo`, `timeout 60`, `A=1`, `uv run`.
fn bare(words: &[String]) -> Vec<&str> {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    loop {
        let n_wrapping = match words.as_slice() {
            [
                "sudo" | "time" | "env" | "nohup" | "exec" | "command" | "stdbuf" | "npx" | "then" | "do"
                | "{",
                _,
                ..,
            ] => 1,
            ["timeout", time, _, ..] if time.starts_with('-') => 3,
            ["timeout", _, _, ..] => 2,
            ["uv" | "poetry" | "pipenv" | "hatch" | "pdm" | "rye", "run", _, ..] => 2,
            ["bundle", "exec", _, ..] => 2,
            [first, _, ..] if is_assignment(first) => 1,
            _ => return words,
        };
        words.drain(..n_wrapping);
    }
}

fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else { return false };
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn is_idle(words: &[&str]) -> bool {
    let Some(first) = words.first() else { return true };
    let is_idle_word = matches!(
        *first,
        "echo"
            | "printf"
            | "true"
            | "false"
            | ":"
            | "set"
            | "export"
            | "unset"
            | "source"
            | "."
            | "sleep"
            | "pwd"
            | "conda"
            | "alias"
            | "ulimit"
            | "trap"
            | "wait"
            | "exit"
            | "done"
            | "fi"
            | "}"
            | "pushd"
            | "popd"
            | "hash"
    );
    is_idle_word || (words.len() == 1 && is_assignment(first))
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Prints a pipeline without filters that only shorten its output, such as `2>&1 | tail -20`.
fn pipeline_text(pipeline: &[ShellCommand]) -> String {
    let mut shown: Vec<String> = Vec::new();
    for (i, command) in pipeline.iter().enumerate() {
        let is_cut = i > 0
            && matches!(command.words.first().map(String::as_str), Some("head" | "tail" | "cat" | "less"));
        if is_cut {
            continue;
        }
        let mut text = one_line(&command.source).into_owned();
        for noise in [" 2>&1", " 2>/dev/null", " 2> /dev/null"] {
            text = text.replace(noise, "");
        }
        shown.push(text);
    }
    shown.join(" | ")
}

fn parse_pipeline(pipeline: &[ShellCommand], directory: Option<&str>) -> Action {
    let words = bare(&pipeline[0].words);
    let mut action = parse_first_command(&words, pipeline, directory);
    for command in &pipeline[1..] {
        filter(&mut action, &bare(&command.words));
    }
    let written = pipeline.iter().flat_map(|command| &command.writes).map(|path| join(directory, path));
    action.changes.extend(written);
    let is_writing_output = matches!(words.first().copied(), Some("cat" | "echo" | "printf" | "tee"));
    if is_writing_output && action.reads.is_empty() && !action.changes.is_empty() {
        action.verb = Verb::Write;
        action.target = action.changes[0].clone();
    }
    action
}

fn parse_first_command(words: &[&str], pipeline: &[ShellCommand], directory: Option<&str>) -> Action {
    let run = || {
        let mut action = Action::new(Verb::Run, pipeline_text(pipeline));
        action.is_test = is_test(words);
        action.heredoc_hash = pipeline.iter().find_map(|command| command.heredoc_hash);
        action
    };
    let Some((first, arguments)) = words.split_first() else { return run() };
    let plain: Vec<&str> = arguments.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let paths = |words: &[&str]| words.iter().map(|path| join(directory, path)).collect::<Vec<_>>();
    match base(first) {
        "cat" | "nl" | "less" | "more" | "bat" | "batcat" if !plain.is_empty() => {
            read(paths(&plain), ReadLines::All)
        }
        "head" | "tail" => {
            let (count, files) = count_and_files(arguments);
            if files.is_empty() {
                return run();
            }
            let is_head = base(first) == "head";
            let lines = match count {
                Some(count) if is_head => ReadLines::Range(LineRange { first: 1, last: count }),
                _ => ReadLines::Unknown,
            };
            read(paths(&files), lines)
        }
        "sed" => sed(arguments, directory).unwrap_or_else(run),
        "awk" if plain.len() >= 2 => {
            let lines = NR
                .captures(plain[0])
                .and_then(|found| range(&found[1], &found[2]))
                .map_or(ReadLines::Unknown, ReadLines::Range);
            read(paths(&plain[1..]), lines)
        }
        "rg" | "grep" | "egrep" | "fgrep" | "ag" | "ack" | "zgrep" => grep(arguments, directory),
        "ls" | "tree" | "eza" | "exa" | "dir" | "fd" | "fdfind" => list(words, &plain, directory),
        "find" => {
            let acts = arguments.iter().any(|word| matches!(*word, "-delete" | "-exec" | "-execdir" | "-ok"));
            let greps = arguments.iter().position(|word| *word == "grep");
            match greps {
                Some(at) => grep(&arguments[at + 1..], directory),
                None if acts => run(),
                None => list(words, &plain[..plain.len().min(1)], directory),
            }
        }
        "git" => match plain.first() {
            Some(&"grep") => {
                let at = arguments.iter().position(|word| *word == "grep").unwrap_or_default();
                grep(&arguments[at + 1..], directory)
            }
            Some(&"ls-files") => list(words, &plain[1..], directory),
            _ => run(),
        },
        "curl" | "wget" | "http" => {
            match plain.iter().find(|word| word.contains("://") || word.starts_with("localhost")) {
                Some(url) => Action::new(Verb::Fetch, (*url).to_owned()),
                None => run(),
            }
        }
        "tee" | "touch" | "rm" | "unlink" => Action { changes: paths(&plain), ..run() },
        "cp" | "mv" => {
            let changed =
                if base(first) == "mv" { plain.as_slice() } else { plain.get(1..).unwrap_or_default() };
            Action { changes: paths(changed), ..run() }
        }
        _ => run(),
    }
}

fn read(paths: Vec<String>, lines: ReadLines) -> Action {
    let mut action = Action::new(Verb::Read, paths.first().cloned().unwrap_or_default());
    action.has_more = paths.len() > 1;
    action.reads = paths.into_iter().map(|path| FileRead { path, lines }).collect();
    action
}

fn list(words: &[&str], places: &[&str], directory: Option<&str>) -> Action {
    let mut action = Action::new(Verb::List, join(directory, places.first().copied().unwrap_or(".")));
    // Listings with another depth or filter are different.
    action.scope = Some(words.join(" "));
    action
}

fn grep(arguments: &[&str], directory: Option<&str>) -> Action {
    let mut pattern: Option<&str> = None;
    let mut places: Vec<String> = Vec::new();
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-e" | "--regexp" | "-f" => pattern = words.next(),
            "-A" | "-B" | "-C" | "-m" | "-g" | "--glob" | "-t" | "--type" | "-T" | "-d" | "-M" => {
                words.next();
            }
            "{}" | "+" | ";" | "\\;" | "--" => {}
            word if word.starts_with('-') && word.len() > 1 => {}
            word if pattern.is_none() => pattern = Some(word),
            word => places.push(join(directory, word)),
        }
    }
    let mut action = Action::new(Verb::Search, pattern.unwrap_or_default().to_owned());
    action.scope = if places.is_empty() { directory.map(str::to_owned) } else { Some(places.join(" ")) };
    action
}

fn sed(arguments: &[&str], directory: Option<&str>) -> Option<Action> {
    let is_edit = arguments.iter().any(|word| word.starts_with("-i") || *word == "--in-place");
    let has_script_flag = arguments.contains(&"-e");
    let mut plain: Vec<&str> = Vec::new();
    for (i, word) in arguments.iter().enumerate() {
        let is_script = i > 0 && arguments[i - 1] == "-e";
        if !word.starts_with('-') && !is_script && !word.is_empty() {
            plain.push(word);
        }
    }
    let files = if has_script_flag { plain.as_slice() } else { plain.get(1..).unwrap_or_default() };
    let paths: Vec<String> = files.iter().map(|path| join(directory, path)).collect();
    let first = paths.first()?.clone();
    if is_edit {
        return Some(Action { has_more: paths.len() > 1, changes: paths, ..Action::new(Verb::Edit, first) });
    }
    let lines =
        plain.first().and_then(|script| sed_range(script)).map_or(ReadLines::Unknown, ReadLines::Range);
    Some(read(paths, lines))
}

fn sed_range(script: &str) -> Option<LineRange> {
    let found = SED.captures(script.trim())?;
    range(&found[1], found.get(2).map_or(&found[1], |last| last.as_str()))
}

fn range(first: &str, last: &str) -> Option<LineRange> {
    let last = if last == "$" { u32::MAX } else { last.parse().ok()? };
    Some(LineRange { first: first.parse().ok()?, last })
}

fn count_and_files<'a>(arguments: &[&'a str]) -> (Option<u32>, Vec<&'a str>) {
    let mut count = Some(10);
    let mut files = Vec::new();
    let mut words = arguments.iter().copied();
    while let Some(word) = words.next() {
        match word {
            "-n" | "--lines" => count = words.next().and_then(|n| n.parse().ok()),
            "-c" | "--bytes" => {
                words.next();
                count = None;
            }
            word if word.starts_with('-') => {
                let digits =
                    word.trim_start_matches("--lines=").trim_start_matches("-n").trim_start_matches('-');
                count = digits.parse().ok().or(count.filter(|_| !word.starts_with("-c")));
            }
            word => files.push(word),
        }
    }
    (count, files)
}

/// Applies a filter after a pipe to the action.
fn filter(action: &mut Action, words: &[&str]) {
    let Some((first, arguments)) = words.split_first() else { return };
    let lines = match base(first) {
        "head" => count_and_files(arguments)
            .0
            .map_or(ReadLines::Unknown, |n| ReadLines::Range(LineRange { first: 1, last: n })),
        "sed" => match arguments.iter().find_map(|script| sed_range(script)) {
            Some(range) => ReadLines::Range(range),
            None => ReadLines::Unknown,
        },
        "cat" | "nl" | "less" | "more" | "sort" => return,
        "grep" | "rg" | "egrep" if action.verb == Verb::Read => {
            let scope = action.target.clone();
            *action = Action { scope: Some(scope), ..grep(arguments, None) };
            return;
        }
        "xargs" if arguments.iter().any(|word| matches!(base(word), "grep" | "rg")) => {
            let at =
                arguments.iter().position(|word| matches!(base(word), "grep" | "rg")).unwrap_or_default();
            let scope = action.target.clone();
            *action = Action { scope: Some(scope), ..grep(&arguments[at + 1..], None) };
            return;
        }
        _ => ReadLines::Unknown,
    };
    for file_read in &mut action.reads {
        file_read.lines = match (file_read.lines, lines) {
            (ReadLines::All, lines) => lines,
            (ReadLines::Range(outer), ReadLines::Range(inner)) => ReadLines::Range(outer.inner(inner)),
            (ReadLines::Range(_) | ReadLines::Unknown, _) => ReadLines::Unknown,
        };
    }
}

fn is_test(words: &[&str]) -> bool {
    let runners = [
        "pytest",
        "py.test",
        "tox",
        "nox",
        "jest",
        "vitest",
        "mocha",
        "rspec",
        "phpunit",
        "ctest",
        "runtests.py",
    ];
    let hosts = [
        "cargo",
        "go",
        "npm",
        "yarn",
        "pnpm",
        "bun",
        "make",
        "just",
        "mise",
        "gradle",
        "gradlew",
        "mvn",
        "dotnet",
        "mix",
        "swift",
        "deno",
        "zig",
        "bazel",
        "python",
        "python3",
        "manage.py",
        "rake",
        "ant",
        "node",
        "task",
    ];
    let Some((first, arguments)) = words.split_first() else { return false };
    if runners.contains(&base(first)) || *first == "bin/test" || *first == "./test.sh" {
        return true;
    }
    let is_test_word = |word: &&&str| {
        let word = base(word);
        word.starts_with("test")
            || word.ends_with(":test")
            || word == "nextest"
            || word == "unittest"
            || runners.contains(&word)
    };
    hosts.contains(&base(first))
        && arguments.iter().take(5).any(|word| is_test_word(&word) && !word.ends_with(".js"))
}

static SED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"^(\d+)(?:,(\d+|\$))?p;?$").expect("a pattern"));
static NR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"NR\s*>=?\s*(\d+)\s*&&\s*NR\s*<=?\s*(\d+)").expect("a pattern"));
