//! The state is true: every statement has its evidence in the step that it names, and no later step contradicts it.

use std::sync::LazyLock;

use fanfold_core::{Budget, Policy, Session, Step, Tokens, working_context};
use fanfold_testkit::trajectories::{Trajectory, trajectories};
use fanfold_tokens::o200k;
use fanfold_wire::{Conversation, Format};
use rayon::prelude::*;
use regex::Regex;
use serde_json::value::RawValue;

use crate::cases::{Verdict, fail, is_fast};
use crate::drivers::apply;

#[test]
fn states_of_recorded_conversations_are_true() {
    if is_fast() {
        return;
    }
    let Some(all) = trajectories() else { return };
    let failed: Vec<String> = all
        .par_iter()
        .filter_map(|trajectory| {
            let error = check(trajectory).err()?;
            Some(format!("{}/{}: {error}", trajectory.source, trajectory.id))
        })
        .collect();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), all.len(), failed.join("\n"));
}

fn check(trajectory: &Trajectory) -> Verdict {
    let budget = Budget::with_reserve(Tokens(u64::from(u32::MAX)), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, o200k());
    let mut conversation = Conversation::empty(Format::Chat);
    let messages: Vec<&RawValue> = trajectory.messages.iter().map(|message| &**message).collect();
    conversation.append(&messages).into_iter().for_each(|change| apply(&mut session, change));
    let steps: Vec<&Step> = session.transcript().entries().iter().filter_map(|entry| entry.step()).collect();
    let context = working_context(session.transcript(), session.ledger(), session.policy());
    for section in &context.state {
        for item in &section.items {
            let verdict = match section.title {
                "changed" | "written" => check_change(&steps, item),
                "tests" => check_test(&steps, item),
                "open" => check_open(&steps, item),
                "last commit" => check_commit(&steps, item),
                _ => Ok(()),
            };
            verdict.map_err(|error| format!("{}: {item}: {error}", section.title))?;
        }
    }
    Ok(())
}

/// The step that an item names, with its index.
fn evidence<'s>(steps: &[&'s Step], item: &str) -> Option<(usize, &'s Step)> {
    static STEP: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"#(\d+)").unwrap());
    let number: usize = STEP.captures_iter(item).last()?[1].parse().ok()?;
    Some((number - 1, *steps.get(number - 1)?))
}

fn commands(step: &Step) -> String {
    step.calls.iter().map(|call| call.arguments.as_str().replace("\\\"", "\"").replace("\\n", "\n")).collect()
}

fn results(step: &Step) -> String {
    let results = step.calls.iter().filter_map(|call| Some(call.result.as_ref()?.body.as_str()));
    results.collect::<Vec<_>>().join("\n")
}

/// The step names the file, and no later command removes it or brings back its old content.
fn check_change(steps: &[&Step], item: &str) -> Verdict {
    let Some((at, step)) = evidence(steps, item) else { return Ok(()) };
    let path = item.split([' ', '(']).next().unwrap_or_default();
    let path = path.trim_start_matches("…/");
    let name = path.rsplit('/').next().unwrap_or_default();
    if item.contains('\n') || !name.contains(|c: char| c.is_alphanumeric()) {
        return fail("it is no path".to_owned());
    }
    let names_it = |step: &Step| commands(step).contains(name);
    let is_script = item.contains(" by ");
    if !names_it(step) && !is_script {
        return fail(format!("step {} does not name {name}", at + 1));
    }
    let undo = Regex::new(&format!(
        r"(?m)(?:^|[;&|\x22] *)(?:rm(?: -\w+)*|git checkout(?: --)?|git restore) (?:[^;&|\n]*[\s/])?{}(?:[\s;&|\x22]|$)",
        regex::escape(path)
    ))
    .unwrap();
    let later = steps[at + 1..].iter().position(|step| {
        let failed = step.calls.iter().any(|call| call.result.as_ref().is_none_or(|result| result.is_error));
        !failed && undo.is_match(&commands(step))
    });
    match later {
        Some(later) => fail(format!("step {} removes or reverts it", at + 2 + later)),
        None => Ok(()),
    }
}

/// The result of the step has the counts, and the command did not run again.
fn check_test(steps: &[&Step], item: &str) -> Verdict {
    static COUNT: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\d+) (failed|passed|skipped)").unwrap());
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\(#(\d+)").unwrap());
    let Some((verdict, number)) = item
        .rsplit_once("` → ")
        .and_then(|(_, rest)| Some((rest, NUMBER.captures(rest)?[1].parse::<usize>().ok()?)))
    else {
        return fail("no evidence".to_owned());
    };
    let text = results(steps[number - 1]);
    let counted = verdict.split(" (#").next().unwrap_or_default();
    for count in COUNT.captures_iter(counted) {
        let n: usize = count[1].parse().unwrap();
        // A total may be the sum of several lines, such as one for each package or test.
        let is_printed = Regex::new(&format!(r"\b{n}\b")).unwrap().is_match(&text);
        let words: &[&str] = match &count[2] {
            "failed" => &["FAIL", "fail", "ERROR", "error", "✗", "Fail"],
            "passed" => &["ok", "pass", "PASS", "Pass", "✓", "OK", "Ran "],
            _ => &["skip", "SKIP", "ignored", "Skip", "todo", "xfail"],
        };
        let n_words: usize = words.iter().map(|word| text.matches(word).count()).sum();
        if n_words == 0 || !is_printed && n_words < n.min(1) {
            return fail(format!("step {number} does not print {} {}", n, &count[2]));
        }
    }
    Ok(())
}

/// The step prints the error, and the same command does not succeed later.
fn check_open(steps: &[&Step], item: &str) -> Verdict {
    let Some((at, step)) = evidence(steps, item) else { return fail("no evidence".to_owned()) };
    let error = item.rsplit_once(" (").map_or(item, |(error, _)| error).trim_end_matches('…');
    let is_quoted = !error.starts_with("exit ") && !error.chars().next().is_some_and(|c| c.is_ascii_digit());
    let texts: String = steps[at..].iter().map(|step| results(step)).collect::<Vec<_>>().join("\n");
    let plain = texts.replace("\\\"", "\"").replace("\\\\", "\\");
    if is_quoted && !texts.contains(error) && !plain.contains(error) {
        return fail(format!("no step from {} on prints it", at + 1));
    }
    let command = commands(step);
    let succeeds = steps[at + 1..].iter().position(|later| {
        commands(later) == command && results(later).contains("<returncode>0</returncode>")
    });
    let fails_again = |from: usize| {
        steps[from..]
            .iter()
            .any(|later| commands(later) == command && !results(later).contains("<returncode>0"))
    };
    match succeeds.map(|n| at + 1 + n) {
        Some(later) if !fails_again(later + 1) => fail(format!("it succeeds in step {}", later + 1)),
        _ => Ok(()),
    }
}

fn check_commit(steps: &[&Step], item: &str) -> Verdict {
    let Some((at, step)) = evidence(steps, item) else { return fail("no evidence".to_owned()) };
    let hash =
        item.split_whitespace().find(|word| word.len() >= 7 && word.bytes().all(|b| b.is_ascii_hexdigit()));
    match hash.is_some_and(|hash| results(step).contains(hash)) {
        true => Ok(()),
        false => fail(format!("step {} does not print the commit", at + 1)),
    }
}
