//! A call and its result in one line: the tool, the target, the outcome, the size. The caller adds the handle.

use std::sync::LazyLock;

use serde_json::Value;

use super::ending::{NumberSearch, Output, ending_in, n_lines};
use super::{Deed, Ending, LineRange, Lines, Verb, Verdict, deed_of, patch};
use crate::condense::signs::{head, tail};
use crate::tokens::thousands;
use crate::transcript::Call;

/// One line that says what a call did and how it ended.
pub fn line_of(call: &Call) -> String {
    line_and_failure(call, &deed_of(&call.tool, call.arguments.as_str())).0
}

/// One line that says what a call did and how it ended, and whether it failed.
pub(crate) fn line_and_failure(call: &Call, deed: &Deed) -> (String, bool) {
    let tool = shortened(&one_line(&call.tool), 48);
    let Some(outcome) = &call.result else {
        return (format!("[{tool}] `{}` → no result", target(deed)), false);
    };
    let output = Output::of(outcome.body.as_str());
    let ending = ending_in(deed, outcome, &output);
    let done = done(call, deed, &output, &ending);
    let line = format!("[{tool}] {done}{}", failure(deed, &ending));
    (line, ending.verdict == Verdict::Failed)
}

/// What the lines of a call are from, in a word or two: the name of a file, what was looked for, a command.
pub(crate) fn source_of(call: &Call, deed: &Deed) -> String {
    const LONGEST: usize = 32;
    let target = one_line(deed.called());
    match deed.verb {
        Verb::Read | Verb::Edit | Verb::Write => {
            let name = target.rsplit('/').next().unwrap_or_default();
            if name.is_empty() { target } else { name.to_owned() }
        }
        Verb::Search => format!("\"{}\"", head(&target, LONGEST)),
        Verb::Run => format!("`{}`", head(&target, LONGEST)),
        Verb::List | Verb::Fetch if !target.is_empty() => head(&target, LONGEST).to_owned(),
        _ if deed.name.is_some() => head(&target, LONGEST).to_owned(),
        Verb::List | Verb::Fetch | Verb::Ask | Verb::Plan | Verb::Other => {
            head(&call.tool, LONGEST).to_owned()
        }
    }
}

const LONGEST: usize = 120;

fn done(call: &Call, deed: &Deed, output: &Output<'_>, ending: &Ending) -> String {
    let arguments = call.arguments.as_str();
    let text = call.result.as_ref().map_or("", |outcome| outcome.body.as_str());
    let target = target(deed);
    let is_told = is_told(&call.tool, deed.verb);
    let more = if deed.has_more { " and more" } else { "" };
    let said = |verb: &str| if is_told { String::new() } else { format!("{verb} ") };
    match deed.verb {
        Verb::Read => format!("{}{target}{}{more}", said("read"), lines_seen(deed, text, output.text())),
        Verb::List => format!(
            "{}{target}{} → {}",
            said("listed"),
            place(deed),
            count(output.n_lines(), "entry", "entries")
        ),
        Verb::Search => {
            format!("{}\"{target}\"{} → {}", said("searched"), place(deed), hits(text, output))
        }
        Verb::Run => format!(
            "ran `{target}` → {}{}{}",
            exit(ending),
            tests(ending),
            count(output.n_lines(), "line", "lines")
        ),
        Verb::Edit => format!("{}{target}{more}{}", said("edited"), hunks(arguments)),
        Verb::Write => format!("{}{target}{more}{}", said("wrote"), written(arguments)),
        Verb::Fetch => format!("{}{target}{more} → {}", said("fetched"), size(text)),
        Verb::Ask => format!("asked \"{target}\" → {}", size(text)),
        Verb::Plan => {
            if target == "plan" {
                "updated the plan".to_owned()
            } else {
                target
            }
        }
        Verb::Other => format!("{target}{}→ {}", if target.is_empty() { "" } else { " " }, size(text)),
    }
}

/// The target, short enough for a line. Paths are never shortened.
fn target(deed: &Deed) -> String {
    let text = one_line(deed.called());
    match deed.verb {
        Verb::Read | Verb::Edit | Verb::Write => text,
        Verb::List | Verb::Fetch if !text.contains(' ') => text,
        Verb::List | Verb::Search | Verb::Run | Verb::Fetch | Verb::Ask | Verb::Plan | Verb::Other => {
            shortened(&text, LONGEST)
        }
    }
}

/// Whether the tool's name already says the verb.
fn is_told(tool: &str, verb: Verb) -> bool {
    let tool = tool.to_ascii_lowercase();
    let words: &[&str] = match verb {
        Verb::Read => &["read", "view"],
        Verb::List => &["list", "ls", "glob", "find"],
        Verb::Search => &["search", "grep", "rg"],
        Verb::Edit => &["edit", "patch", "replace"],
        Verb::Write => &["write", "create"],
        Verb::Fetch => &["fetch", "extract", "navigate"],
        Verb::Run | Verb::Ask | Verb::Plan | Verb::Other => &[],
    };
    words.iter().any(|word| tool.contains(word))
}

fn one_line(text: &str) -> String {
    // Most are one already.
    let is_blank = |byte: &u8| !byte.is_ascii_graphic();
    let is_plain = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
    let bytes = text.as_bytes();
    let is_open = [bytes.first(), bytes.last()].into_iter().flatten().any(is_blank);
    if bytes.iter().all(is_plain) && !is_open && !text.contains("  ") {
        return text.to_owned();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn shortened(text: &str, longest: usize) -> String {
    if text.len() <= longest {
        return text.to_owned();
    }
    let room = longest - "…".len();
    let ending = tail(text, room / 4);
    format!("{}…{ending}", head(text, room - ending.len()))
}

fn count(n: usize, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n as u64), if n == 1 { one } else { many })
}

fn size(text: &str) -> String {
    match n_lines(text.trim()) {
        0 | 1 => count(text.chars().count(), "char", "chars"),
        n => count(n, "line", "lines"),
    }
}

fn place(deed: &Deed) -> String {
    match (&deed.place, deed.verb) {
        (Some(place), Verb::Search) => format!(" in {}", shortened(&one_line(place), LONGEST)),
        (Some(place), Verb::List) if place.starts_with('/') => format!(" in {place}"),
        _ => String::new(),
    }
}

fn exit(ending: &Ending) -> String {
    match (ending.exit, ending.verdict) {
        (Some(code), _) => format!("exit {code}, "),
        (None, Verdict::Failed) => "failed, ".to_owned(),
        (None, Verdict::Passed | Verdict::Unknown) => String::new(),
    }
}

fn tests(ending: &Ending) -> String {
    let Some(tests) = ending.tests else { return String::new() };
    let parts = [(tests.failed, "failed"), (tests.passed, "passed"), (tests.skipped, "skipped")];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}, ")).collect()
}

fn failure(deed: &Deed, ending: &Ending) -> String {
    let mark = match (ending.verdict, deed.verb) {
        (Verdict::Failed, Verb::Run) => "",
        (Verdict::Failed, _) => " → failed",
        (Verdict::Passed | Verdict::Unknown, _) => "",
    };
    match &ending.error {
        Some(error) => format!("{mark}: {}", shortened(&one_line(error), LONGEST)),
        None => mark.to_owned(),
    }
}

/// Which lines a read showed, by its numbered lines where it has them, and of how many.
fn lines_seen(deed: &Deed, text: &str, shown: &str) -> String {
    let numbers = numbered(shown);
    let total = TOTAL.numbers(text).next().and_then(|number| number.parse::<u32>().ok());
    let range = match (numbers, deed.reads.first().map(|sight| sight.lines)) {
        (Some(range), _) => Some(range),
        (None, Some(Lines::Range(range))) => Some(range),
        (None, Some(Lines::All | Lines::Part) | None) => None,
    };
    let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
    match range {
        Some(LineRange { first, last: u32::MAX }) => format!(" from line {first}{of}"),
        Some(LineRange { first: 1, last }) if total == Some(last) => {
            format!(" ({})", count(last as usize, "line", "lines"))
        }
        Some(LineRange { first, last }) => format!(" lines {first}–{last}{of}"),
        None => format!(" ({}{of})", count(n_lines(shown.trim_end()), "line", "lines")),
    }
}

/// The first and the last line number of a listing with numbers: `12→`, `12|`, `12` and a tab.
fn numbered(text: &str) -> Option<LineRange> {
    let number = |line: &str| {
        let line = line.trim_start();
        let n_digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let is_number = (1..=7).contains(&n_digits) && line[n_digits..].starts_with(['→', '|', '\t']);
        if is_number { line[..n_digits].parse::<u32>().ok() } else { None }
    };
    let first = text.lines().take(4).find_map(number)?;
    let last = tail(text, 4_000).lines().rev().find_map(number).filter(|last| *last >= first)?;
    Some(LineRange { first, last })
}

static TOTAL: LazyLock<NumberSearch> = LazyLock::new(|| {
    let pattern = r#""?(?:total_lines|totalLines)"?\s*[:=]\s*(\d+)"#;
    NumberSearch::new(pattern, &[("otal", 2)], &["total_lines", "totalLines"], 400)
});
static HITS: LazyLock<NumberSearch> = LazyLock::new(|| {
    let pattern = r#""?(?:total_count|total_matches|numMatches)"?\s*[:=]\s*(\d+)|Found (\d+)"#;
    let words = [("otal", 2), ("numMatches", 1), ("Found ", 0)];
    NumberSearch::new(pattern, &words, &["total_count", "total_matches", "numMatches"], 400)
});

fn hits(text: &str, output: &Output<'_>) -> String {
    let number = HITS.numbers(text).next().and_then(|number| number.parse().ok());
    let says_none = || head(text, 60).to_ascii_lowercase().starts_with("no ");
    count(number.unwrap_or_else(|| if says_none() { 0 } else { output.n_lines() }), "hit", "hits")
}

fn hunks(arguments: &str) -> String {
    let n = match serde_json::from_str::<Value>(arguments) {
        Ok(value) => {
            let edits = value.get("edits").and_then(Value::as_array).map_or(0, Vec::len);
            let text = ["patch", "input", "diff"].iter().find_map(|name| value.get(name)?.as_str());
            edits.max(text.map_or(0, patch::hunks))
        }
        Err(_) => patch::hunks(arguments),
    };
    if n > 1 { format!(" ({n} hunks)") } else { String::new() }
}

fn written(arguments: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(arguments) else { return String::new() };
    let names = ["content", "contents", "file_text", "text"];
    let Some(text) = names.iter().find_map(|name| value.get(name)?.as_str()) else { return String::new() };
    format!(" ({})", count(text.trim_end_matches('\n').split('\n').count(), "line", "lines"))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::notation::parse;

    /// Each conversation is a call and its result.
    fn check(conversation: &str, expected: &Expect) {
        let entries = parse(conversation).expect("a conversation");
        let calls = entries.iter().filter_map(|entry| entry.step()).flat_map(|step| &step.calls);
        let lines: String = calls.map(|call| line_of(call) + "\n").collect();
        expected.assert_eq(&lines);
    }

    #[test]
    fn a_line_says_tool_target_outcome_and_size() {
        check(
            r#"
call    terminal {"command": "npm test"}
result  {"output": "a\nb\nc", "exit_code": 0, "error": null}
call    Read {"file_path": "src/a.rs", "offset": 10, "limit": 2}
result      10→fn main() {
            11→}
call    read_file {"path": "src/a.rs", "offset": 1, "limit": 2}
result  {"content": "     1|a\n     2|b", "total_lines": 300}
call    Bash {"command": "cat src/a.rs"}
result  one
        two
call    Grep {"pattern": "foo", "path": "src"}
result  src/a.rs:1:foo
        src/b.rs:2:foo
call    Grep {"pattern": "foo", "path": "src"}
result  No matches found
call    apply_patch {"input": "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n@@\n-c\n+d\n*** End Patch"}
result  Done
call    Edit {"file_path": "src/a.rs", "old_string": "x", "new_string": "y"}
error   <tool_use_error>String to replace not found in file.</tool_use_error>
call    Write {"file_path": "src/b.rs", "content": "a\nb\n"}
result  ok
call    bash {"command": "cargo test 2>&1 | tail -3"}
result  test tests::a ... FAILED
        error: test failed, to rerun pass `--lib`
        test result: FAILED. 11 passed; 1 failed; 0 ignored
call    WebFetch {"url": "https://a.b/c", "prompt": "?"}
result  hello
call    TodoWrite {"todos": []}
result  ok
call    get_reservation_details {"reservation_id": "XEWRD9"}
result  {"a": 1}
call    bash {"command": "sleep 100 && run"}
open
call    bash null
result
"#,
            &expect![[r#"
                [terminal] ran `npm test` → exit 0, 3 lines
                [Read] src/a.rs lines 10–11
                [read_file] src/a.rs lines 1–2 of 300
                [Bash] read src/a.rs (2 lines)
                [Grep] "foo" in src → 2 hits
                [Grep] "foo" in src → 0 hits
                [apply_patch] src/a.rs (2 hunks)
                [Edit] src/a.rs → failed: <tool_use_error>String to replace not found in file.</tool_use_error>
                [Write] src/b.rs (2 lines)
                [bash] ran `cargo test` → failed, 1 failed, 11 passed, 3 lines: test tests::a ... FAILED
                [WebFetch] https://a.b/c → 5 chars
                [TodoWrite] updated the plan
                [get_reservation_details] reservation_id=XEWRD9 → 8 chars
                [bash] `run` → no result
                [bash] ran `` → 0 lines
            "#]],
        );
    }

    #[test]
    fn long_commands_are_shortened_on_a_character() {
        let command = "ü".repeat(300);
        let conversation = format!("call    bash {{\"command\": \"{command}\"}}\nresult  x\n");
        let entries = parse(&conversation).expect("a conversation");
        let line = line_of(&entries[0].step().expect("a step").calls[0]);
        assert!(line.len() < 160, "{line}");
    }
}
