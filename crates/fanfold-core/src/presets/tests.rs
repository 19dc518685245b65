//! Runs the examples in the headers of the passes.

use std::sync::Arc;

use super::*;
use crate::examples::{FourBytes, example, header_with};
use crate::fold::draft::{Draft, DraftOptions};
use crate::fold::economy::Economy;
use crate::fold::ledger::{EntryState, Ledger};
use crate::fold::policy::{Head, LateSystemReach, Policy, Reach, Stage, Tail, UserTextReach};
use crate::model::budget::Budget;
use crate::model::parallel::Sequential;
use crate::model::tokens::{Count, Tokens};
use crate::model::transcript::{EntryId, Transcript};
use crate::notation::{parse, print_view};
use crate::output::assemble::assemble;
use crate::select::analysis::Analysis;

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
    policy.middle_share = if pass.name == "middle" { 1000 } else { 0 };
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
        Stage { name: "test", tail, passes: vec![pass], reach, above: 0, goal: None, segment_size: None };
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
    let window = if pass.name == "digest" { Tokens(700) } else { Tokens(400) };
    let room = Budget::with_reserve(window, Tokens::ZERO).room();
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
