//! Every kind of secret, wherever it stands in a result: what the rules know of it when they see all of it stays here, whatever lines
//! are chosen and however the words are cut.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use fanfold_core::{
    Body, Budget, Call, Entry, Origin, Outcome, Policy, Prompt, Session, Speaker, Step, Tokens, Words,
};
use fanfold_engine::{Ended, Ways, summarise_alone};
use fanfold_redact::redact;
use fanfold_store::Millis;
use fanfold_testkit::fakes::summaries::good_summary;

use super::kept::ways;

#[allow(dead_code, unused_imports, reason = "what is harmless is of no use here")]
#[path = "../../../../fanfold-redact/tests/it/corpus/mod.rs"]
mod planted;

/// A piece of a secret of so many bytes is one too many.
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

/// A result with other lines around a secret.
fn result(n: usize, secret: &str) -> String {
    let around = |from: usize| -> String {
        (from..from + 6)
            .map(|i| format!("line {i} of src/part_{n}.txt has the value {n}{i}77 in it\n"))
            .collect()
    };
    format!("{}error: it failed with\n{secret}\n{}", around(0), around(6))
}

/// All that a model was shown, and the summary.
fn sent_and_written(session: &Session<'static>, window: u64) -> (String, String) {
    let left = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&left);
    let mut ways: Ways = ways(move |prompt| {
        let mut seen = seen.lock().unwrap();
        seen.push_str(&prompt.user);
        Ok(good_summary(&prompt.user))
    });
    ways.ways[0].window = Tokens(window);
    let (summary, ended) = summarise_alone(session, "", &ways, Millis(1_794_751_764_000), &mut |_| {});
    assert!(matches!(&ended, Ended::Written(_)), "{ended}");
    let left = left.lock().unwrap().clone();
    (left, summary.unwrap().text.to_string())
}

#[test]
fn no_secret_leaves_whether_lines_are_chosen_or_all_are_shown() {
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
    // The newest words are quoted in each question and in the summary.
    session.append(prompt(format!("go on with {}", cases[0].text)));
    session.append(step(cases.len(), "done".to_owned()));
    let texts: Vec<String> = cases.iter().enumerate().map(|(n, case)| result(n, &case.text)).collect();
    let known: Vec<_> = texts.iter().map(|text| redact(text)).collect();
    let harmless: HashSet<&[u8]> = known.iter().flat_map(|text| pieces(text)).collect();
    for (window, is_chosen) in [(16_000, true), (2_000_000, false)] {
        let (sent, summary) = sent_and_written(&session, window);
        // The newest ones are not folded, and so not told of.
        let is_shown = |n: usize| sent.contains(&format!("line 3 of src/part_{n}.txt"));
        assert_eq!((0..cases.len() / 2).all(is_shown), !is_chosen);
        assert!(sent.contains("[redacted: "));
        for (text, is) in [(&sent, "the questions"), (&summary, "the summary")] {
            let there: HashSet<&[u8]> = pieces(text).collect();
            for case in &cases {
                let leak =
                    pieces(&case.secret).find(|piece| there.contains(piece) && !harmless.contains(piece));
                assert!(
                    leak.is_none(),
                    "{} in {}: {:?} stands in {is} of {window}",
                    case.kind,
                    case.setting,
                    String::from_utf8_lossy(leak.unwrap_or_default())
                );
            }
        }
    }
}
