//! Runs the examples in the headers of the passes.

use std::sync::Arc;

use super::*;
use crate::examples::header_with;
use crate::fold::draft::{Draft, DraftOptions};
use crate::fold::economy::Economy;
use crate::fold::ledger::{EntryState, Ledger};
use crate::fold::policy::{Head, LateSystemReach, Policy, Reach, Stage, Tail, UserTextReach};
use crate::model::budget::Budget;
use crate::model::parallel::Sequential;
use crate::model::tokens::{Count, FrameCosts, Tokens};
use crate::model::transcript::{EntryId, Transcript};
use crate::notation::{parse, print_view};
use crate::output::assemble::assemble;
use crate::select::analysis::Analysis;

/// Counts four bytes as one token, so that short lines of real text are large enough to fold.
struct FourBytes;

impl Count for FourBytes {
    fn count(&self, text: &str) -> Tokens {
        Tokens(text.len().div_ceil(4) as u64)
    }

    fn frame(&self) -> FrameCosts {
        FrameCosts { message: Tokens(1), call: Tokens(1), media: Tokens(50) }
    }

    fn name(&self) -> &str {
        "four bytes"
    }

    fn is_exact(&self) -> bool {
        true
    }
}

#[test]
fn header_examples_match_the_passes() {
    let mut wrong = String::new();
    for pass in ALL_PASSES {
        let header = header_with(&format!("PASS: Pass = Pass {{ name: \"{}\"", pass.name));
        let (before, after) = example(&header).unwrap_or_else(|| panic!("{} has no example", pass.name));
        let shown = run_on(*pass, &before);
        if shown.trim_end() != after.trim_end() {
            wrong.push_str(&format!("--- {}\n{shown}\n", pass.name));
        }
    }
    assert!(wrong.is_empty(), "the correct examples are:\n{wrong}");
}

#[test]
fn short_arguments_are_kept() {
    let call = r#"call    read {"path":"src/parser/tests/headers.rs","lines":[115,121],"why":"to see which line it is"}"#;
    let before = format!("{call}\nresult  ok");
    assert_eq!(run_on(ARGUMENTS, &before).trim_end(), before);
}

/// Runs a pass on a conversation, under the first policy that has it, and prints the view.
fn run_on(pass: Pass, before: &str) -> String {
    let mut policies = Policy::NAMES.iter().filter_map(|name| Policy::named(name));
    let has_pass = |stage: &Stage| stage.passes.iter().any(|other| other.name == pass.name);
    let found = policies.find(|policy| policy.stages.iter().any(has_pass));
    let mut policy = found.unwrap_or_else(Policy::fanfold);
    let steps = usize::from(matches!(pass.name, "anchor" | "digest" | "summary" | "call_lines" | "drop"));
    policy.tail = Tail { share: 0, steps, results: 0, ceiling: 1000 };
    policy.keeps_anchor = pass.name == "anchor";
    policy.long_result_chars = 40;
    policy.arrival_share = 700;
    policy.economy = policy.economy.map(|economy| Economy { min_repeat: Tokens(40), ..economy });
    policy.head =
        if pass.name == "summary" { Head::Messages(0) } else { Head::FirstTurn { steps: 0, share: 0 } };
    let user_text = match pass.name {
        "user_text" => UserTextReach::PastedBlocks,
        "summary" | "drop" => UserTextReach::Unrestricted,
        _ => UserTextReach::Never,
    };
    let tail = matches!(pass.name, "squeeze" | "arrival" | "again");
    let late_system = match pass.name {
        "late_system" => LateSystemReach::Fold,
        "summary" | "drop" => LateSystemReach::Absorb,
        _ => LateSystemReach::Never,
    };
    let reach = Reach { tail, user_text, images: false, late_system };
    // Without a tail, `squeeze` shortens as far as necessary.
    let tail = if pass.name == "squeeze" { 0 } else { 1000 };
    let stage =
        Stage { name: "test", tail, passes: vec![pass], reach, above: 0, goal: None, segment_share: None };
    let mut transcript = Transcript::new();
    for entry in parse(before).expect("valid notation") {
        transcript.append(entry, &FourBytes);
    }
    let mut ledger = Ledger { media_tokens: FourBytes.frame().media, ..Ledger::default() };
    ledger.entry_states.resize(transcript.len(), EntryState::Whole);
    let steps = transcript.entries().iter().enumerate().filter_map(|(i, entry)| Some((i, entry.step()?)));
    for (i, step) in steps {
        let visible_lines = Arc::make_mut(&mut ledger.visible_lines);
        visible_lines.add_arguments(EntryId::from(i), step);
        if i + 1 < transcript.len() {
            visible_lines.add_results(EntryId::from(i), step, |_| true);
        }
    }
    let room = Budget::with_reserve(Tokens(400), Tokens::ZERO).room();
    let options = DraftOptions {
        counter: &FourBytes,
        parallel: &Sequential,
        policy: &policy,
        stage: &stage,
        room,
        range: None,
    };
    let mut analysis = Analysis::default();
    let mut draft = Draft::new(&transcript, &mut ledger, &mut analysis, &options);
    // These passes stop at the target; the others fold everything that they may.
    let target = match pass.name {
        "digest" => draft.total().permille(800),
        "squeeze" => draft.total().permille(300),
        _ => Tokens::ZERO,
    };
    draft.run(target);
    draft.finish();
    print_view(&transcript, &assemble(&transcript, &ledger))
}

/// The example in the header of a file: before and after, separated by a line `->` or by a column of arrows.
fn example(header: &[String]) -> Option<(String, String)> {
    let start = header.iter().position(|line| *line == "```text")? + 1;
    let end = start + header[start..].iter().position(|line| *line == "```")?;
    let lines = &header[start..end];
    if let Some(arrow) = lines.iter().position(|line| *line == "->") {
        return Some((lines[..arrow].join("\n"), lines[arrow + 1..].join("\n")));
    }
    let arrow = lines.iter().find_map(|line| line.find(" ->  "))? + 1;
    let right = arrow + 4;
    let cut = |line: &String| {
        let (left, right) = line.split_at_checked(right).unwrap_or((line.as_str(), ""));
        (left.replace(" ->  ", "").trim_end().to_owned(), right.to_owned())
    };
    let (left, right): (Vec<_>, Vec<_>) = lines.iter().map(cut).unzip();
    Some((left.join("\n"), right.join("\n")))
}
