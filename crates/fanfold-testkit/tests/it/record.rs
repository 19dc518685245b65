//! A record is true: every line is from its step, entries are in order, and gaps are marked.

use std::sync::LazyLock;

use fanfold_core::{Entry, Extent, Handle, RecordEntry, RecordText, Session, View};
use regex::Regex;
use serde_json::Value;

use crate::cases::{Verdict, check_cases, fail};
use crate::drivers::{drive, originals};

/// Checks the segments in a view.
pub(crate) fn check(session: &Session<'_>, _: &View) -> Verdict {
    for segment in session.ledger().live_segments() {
        let mut last_step = 0;
        for part in &segment.parts {
            let text = part.text.trim_start_matches("<fanfold>\n").trim_end_matches("\n</fanfold>");
            for entry in RecordText::parse(text).entries {
                check_order(&entry, &mut last_step)?;
                check_lines(session, &entry)?;
            }
        }
    }
    Ok(())
}

fn check_order(entry: &RecordEntry, last_step: &mut u32) -> Verdict {
    let Some(first) = entry.handle[1..].split('-').next().and_then(|number| number.parse().ok()) else {
        return Ok(());
    };
    if std::mem::replace(last_step, first) >= first {
        return fail(format!("{} stands behind a later step", entry.handle));
    }
    Ok(())
}

fn check_lines(session: &Session<'_>, entry: &RecordEntry) -> Verdict {
    let handle: Handle = entry.handle.parse().map_err(|_| format!("{} is not a handle", entry.handle))?;
    session.recall(handle, &Extent::Whole).map_err(|error| error.to_string())?;
    let texts = texts_behind(session, handle);
    // Indented lines are kept text, except for the marks of gaps. Those behind an outcome line are from a call.
    let (mut before, mut is_of_call): (Option<String>, bool) = (None, false);
    for line in &entry.lines[1..] {
        let Some(text) = line.strip_prefix("    ") else {
            (before, is_of_call) = (None, true);
            continue;
        };
        if text.starts_with('…') {
            before = None;
            continue;
        }
        let (kept, has_gap) = match text.strip_suffix(" …") {
            Some(kept) => (kept, true),
            None => (text, false),
        };
        let signed = kept.strip_prefix("+ ").or_else(|| kept.strip_prefix("- "));
        for part in kept.split(" … ") {
            let is_kept = |part: &str| texts.iter().any(|text| text.contains(part));
            if !is_kept(part) && !signed.is_some_and(is_kept) {
                return fail(format!("{} has a line that its step does not have: {part:?}", entry.handle));
            }
        }
        let is_unmarked = |before: &&String| {
            is_of_call && signed.is_none() && !texts.iter().any(|text| are_adjacent(text, before, kept))
        };
        if let Some(before) = before.as_ref().filter(is_unmarked) {
            let lines = entry.lines.join("\n");
            return fail(format!("{}: a gap between {before:?} and {kept:?}:\n{lines}", entry.handle));
        }
        before = (!has_gap && signed.is_none()).then(|| kept.to_owned());
    }
    Ok(())
}

/// Returns whether only blank lines stand between two lines somewhere in a text. A tool may number lines.
fn are_adjacent(text: &str, one: &str, other: &str) -> bool {
    text.match_indices(one).any(|(at, _)| {
        let mut rest = &text[at + one.len()..];
        loop {
            rest = rest.trim_start();
            let n_digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let after_number = rest[n_digits..].strip_prefix(['→', '\t']).filter(|_| n_digits > 0);
            if rest.starts_with(other.trim_start()) {
                return true;
            }
            let Some(after_number) = after_number else { return false };
            rest = after_number;
        }
    })
}

/// The texts of the entries behind a handle, also as the strings inside of JSON and without escapes.
fn texts_behind(session: &Session<'_>, handle: Handle) -> Vec<String> {
    let original = session.ledger().original(session.transcript(), handle);
    let mut texts: Vec<String> = Vec::new();
    for id in original.map(|original| original.entries()).unwrap_or_default() {
        let entry = session.transcript().entry(id);
        let shown: Vec<&str> = match entry {
            Entry::Prompt(prompt) => vec![prompt.body.as_str()],
            Entry::Step(step) => {
                let results = step.calls.iter().filter_map(|call| call.result.as_ref());
                [step.text.as_str()].into_iter().chain(results.map(|outcome| outcome.body.as_str())).collect()
            }
        };
        let raw = originals(entry, id).into_iter().map(|(_, text)| text);
        for text in raw.chain(shown) {
            add_texts(text, &mut texts);
        }
    }
    texts
}

fn add_texts(text: &str, texts: &mut Vec<String>) {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        add_strings(&value, texts);
    }
    let once = unescaped(text);
    let twice = unescaped(&once);
    let plain = without_colours(text);
    // Records are taken from results without the tags of a harness.
    let untagged = without_tags(&plain);
    texts.extend([text.to_owned(), once, twice, plain, untagged]);
}

fn add_strings(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| add_strings(value, texts)),
        Value::Object(fields) => fields.values().for_each(|value| add_strings(value, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('r')) => {}
            ('\\', Some(escaped)) => out.push(escaped),
            (c, _) => out.push(c),
        }
    }
    out
}

fn without_tags(text: &str) -> String {
    static TAG: LazyLock<Regex> = LazyLock::new(|| {
        let whole = "(?s)<system-reminder>.*?</system-reminder>|<usage>.*?</usage>";
        let tags =
            "output(?:_head|_tail)?|warning|elided_chars|retrieval_status|task_id|task_type|tool_use_error";
        Regex::new(&format!("{whole}|</?(?:{tags})>")).unwrap()
    });
    TAG.replace_all(text, "").into_owned()
}

fn without_colours(text: &str) -> String {
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A command of the operating system ends with an escape and a backslash.
        let text = match part.chars().next() {
            Some(']') => part.split_once('\u{7}').map_or("", |(_, rest)| rest),
            Some('\\') => &part[1..],
            _ => part.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest),
        };
        out.push_str(text);
    }
    out
}

#[test]
fn records_are_true() {
    check_cases(3_000, &["fanfold"], |case| drive(case, |session, view| check(session, view)));
}
