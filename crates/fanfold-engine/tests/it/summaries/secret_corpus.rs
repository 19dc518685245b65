//! No part of a secret that the redaction rules detect in the whole result appears in a prompt or a summary,
//! whatever excerpts of the result they quote.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use fanfold_core::{
    Body, Budget, Call, Entry, Origin, Outcome, Policy, Prompt, Session, Speaker, Step, Tokens, Words,
};
use fanfold_engine::{JobOutcome, SummaryModels, summarise_unstored};
use fanfold_redact::redact;
use fanfold_store::Millis;
use fanfold_testkit::fakes::summaries::good_summary;

use super::stored::models;

#[allow(dead_code, unused_imports, reason = "the harmless cases are not used here")]
#[path = "../../../../fanfold-redact/tests/it/corpus/mod.rs"]
mod planted;

/// The length of a piece of a secret that counts as a leak, in bytes.
const PIECE: usize = 12;

fn pieces(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().windows(PIECE)
}

fn prompt(text: String) -> Entry {
    Entry::Prompt(Prompt {
        speaker: Speaker::User,
        body: Body::text(text),
        media: Vec::new(),
        origin: Origin::OUTSIDE,
    })
}

fn step(n: usize, result: String) -> Entry {
    let outcome =
        Outcome { body: Body::text(result), is_error: false, media: Vec::new(), origin: Origin::OUTSIDE };
    let call = Call {
        id: format!("c{n}"),
        tool: "bash".to_owned(),
        arguments: Body::text(format!("{{\"command\":\"cat src/part_{n}.txt\"}}")),
        result: Some(outcome),
        origin: Origin::OUTSIDE,
    };
    Entry::Step(Step {
        text: Body::text(""),
        reasoning: Body::text(""),
        calls: vec![call],
        origin: Origin::OUTSIDE,
    })
}

/// A result with a secret between other lines.
fn result(n: usize, secret: &str) -> String {
    let lines = |from: usize| -> String {
        (from..from + 6)
            .map(|i| format!("line {i} of src/part_{n}.txt has the value {n}{i}77 in it\n"))
            .collect()
    };
    format!("{}error: it failed with\n{secret}\n{}", lines(0), lines(6))
}

/// Runs a job. Returns all prompts and the summary.
fn prompts_and_summary(session: &Session<'static>, window: u64) -> (String, String) {
    let prompts = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&prompts);
    let mut models: SummaryModels = models(move |prompt| {
        let mut seen = seen.lock().unwrap();
        seen.push_str(&prompt.user);
        Ok(good_summary(&prompt.user))
    });
    models.models[0].window = Tokens(window);
    let (summary, outcome) = summarise_unstored(session, "", &models, Millis(1_794_751_764_000), &mut |_| {});
    assert!(matches!(&outcome, JobOutcome::Written(_)), "{outcome}");
    let prompts = prompts.lock().unwrap().clone();
    (prompts, summary.unwrap().text.to_string())
}

#[test]
fn prompts_and_summaries_contain_no_piece_of_a_secret() {
    let cases = planted::cases(5, 2_500);
    let mut session = Session::new(
        Policy::named("fanfold").unwrap(),
        Budget::with_reserve(Tokens(30_000), Tokens::ZERO),
        &Words,
    );
    session.append(prompt("please look at all of these files".to_owned()));
    for (n, case) in cases.iter().enumerate() {
        session.append(step(n, result(n, &case.text)));
    }
    // Prompts and the summary quote the newest user text.
    session.append(prompt(format!("go on with {}", cases[0].text)));
    session.append(step(cases.len(), "done".to_owned()));
    let texts: Vec<String> = cases.iter().enumerate().map(|(n, case)| result(n, &case.text)).collect();
    let redacted: Vec<_> = texts.iter().map(|text| redact(text)).collect();
    let harmless: HashSet<&[u8]> = redacted.iter().flat_map(|text| pieces(text)).collect();
    for (window, is_excerpted) in [(16_000, true), (2_000_000, false)] {
        let (prompts, summary) = prompts_and_summary(&session, window);
        // The newest results are not folded, so prompts do not contain them.
        let is_quoted = |n: usize| prompts.contains(&format!("line 3 of src/part_{n}.txt"));
        assert_eq!((0..cases.len() / 2).all(is_quoted), !is_excerpted);
        assert!(prompts.contains("[redacted: "));
        for (text, name) in [(&prompts, "the prompts"), (&summary, "the summary")] {
            let found: HashSet<&[u8]> = pieces(text).collect();
            for case in &cases {
                let leak =
                    pieces(&case.secret).find(|piece| found.contains(piece) && !harmless.contains(piece));
                assert!(
                    leak.is_none(),
                    "{} in {}: {:?} is in {name} for a window of {window}",
                    case.kind,
                    case.context,
                    String::from_utf8_lossy(leak.unwrap_or_default())
                );
            }
        }
    }
}
