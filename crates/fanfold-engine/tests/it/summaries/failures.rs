//! Each kind of failure of a summary, over HTTP: no data is lost, and the message explains the failure.

use std::time::Duration;

use fanfold_engine::{JobOutcome, ModelFailure, SummaryModels};
use fanfold_provider::{ErrorClass, KeySource};
use fanfold_testkit::fakes::summaries::{
    REFUSAL, good_summary, longer_than_its_source, with_a_made_up_quote,
};
use fanfold_testkit::fakes::upstream::Fault;

use super::fixture::{Fixture, summary_model, summary_model_at};

/// Checks that the main model writes the summary after the summary model failed, and that the failure is reported.
fn check_main_model_writes(fixture: &Fixture, expected: &[&str]) {
    let before = (fixture.view(), fixture.resend());
    let outcome = fixture.summarise_in_background();
    let JobOutcome::Written(written) = &outcome else { panic!("{outcome}") };
    assert_eq!((written.model.as_str(), written.failures.len()), ("large", 1), "{outcome}");
    let message = format!("{outcome}\nhint: {}", outcome.hint().unwrap());
    for words in expected {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    // The summary is recorded. It changes neither the current view nor a retry.
    assert_eq!(fixture.events("summarised").len(), 1);
    check_tried(fixture, |tried| tried["missed"].as_array().unwrap().len() == 1 && !tried["by"].is_null());
    assert_eq!((fixture.view(), fixture.resend()), before);
    fixture.check_nothing_is_lost();
}

/// Checks the one recorded event about failures.
fn check_tried(fixture: &Fixture, is_right: fn(&serde_json::Value) -> bool) {
    let tried = fixture.events("tried");
    assert_eq!(tried.len(), 1);
    let tried = serde_json::from_str(&tried[0].body).unwrap();
    assert!(is_right(&tried), "{tried}");
}

/// Checks that the record is used alone and the view is unchanged after both models failed.
fn check_record_is_used(fixture: &Fixture, expected: &[&str]) {
    let before = (fixture.view(), fixture.resend());
    let outcome = fixture.summarise_in_background();
    let JobOutcome::Digest(failures) = &outcome else { panic!("{outcome}") };
    assert_eq!(failures.len(), 2, "{outcome}");
    let message = format!("{outcome}\nhint: {}", outcome.hint().unwrap());
    for words in [&["the record is used alone"], expected].concat() {
        assert!(message.contains(words), "`{words}` is not in: {message}");
    }
    assert_eq!(fixture.events("summarised").len(), 0);
    check_tried(fixture, |tried| tried["missed"].as_array().unwrap().len() == 2 && tried["by"].is_null());
    assert_eq!((fixture.view(), fixture.resend()), before);
    fixture.check_nothing_is_lost();
}

/// Checks a fault of the summary model alone, then of both models.
fn check_fault(fault: &Fault, expected: &[&str]) {
    let fixture = Fixture::new();
    fixture.fail_summary_model(fault.clone());
    check_main_model_writes(&fixture, expected);
    let fixture = Fixture::new();
    fixture.fail_both_models(fault);
    check_record_is_used(&fixture, expected);
}

/// Checks that an error about a credential changes nothing and that no other model is called.
fn check_aborts(fault: &Fault, class: ErrorClass, expected: &[&str]) {
    for is_by_hand in [false, true] {
        let fixture = Fixture::new();
        fixture.fail_summary_model(fault.clone());
        let before = (fixture.view(), fixture.resend());
        let outcome = fixture.summarise(&fixture.models(), is_by_hand);
        let JobOutcome::Aborted(failures) = &outcome else { panic!("{outcome}") };
        assert!(
            matches!(&failures[..], [ModelFailure::Provider(fault)] if fault.class == class),
            "{outcome}"
        );
        let message = format!("{outcome}\nhint: {}", outcome.hint().unwrap());
        // The message names the command, but not the key that it prints.
        for words in [&["nothing was changed", "`echo …`"], expected].concat() {
            assert!(message.contains(words), "`{words}` is not in: {message}");
        }
        assert!(!message.contains("not-a-key"), "{message}");
        assert_eq!(fixture.main.n_seen(), 0);
        assert_eq!((fixture.events("summarised").len(), fixture.events("fold_asked").len()), (0, 0));
        assert_eq!((fixture.view(), fixture.resend()), before);
        fixture.check_nothing_is_lost();
    }
}

#[test]
fn an_answer_of_status_200_with_an_empty_body() {
    check_fault(&Fault::Answer(200, String::new()), &["little at http://127.0.0.1"]);
}

#[test]
fn an_answer_of_status_200_with_empty_content() {
    let body =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":""},"finish_reason":"stop"}]}"#;
    check_fault(&Fault::Answer(200, body.to_owned()), &["the answer is empty", "name another model"]);
}

#[test]
fn truncated_json() {
    let body = r###"{"choices":[{"index":0,"message":{"role":"assistant","content":"## Goal"###;
    check_fault(&Fault::Answer(200, body.to_owned()), &["the answer is broken"]);
}

#[test]
fn invalid_json() {
    check_fault(&Fault::Garbage, &["the answer is broken"]);
}

#[test]
fn a_stream_that_is_closed_early() {
    check_fault(&Fault::Disconnect(3), &["the answer is broken"]);
}

#[test]
fn a_connection_that_is_closed_without_an_answer() {
    check_fault(&Fault::HangUp, &["little at http://127.0.0.1"]);
}

#[test]
fn status_401_aborts_and_names_the_credential() {
    let fault = Fault::Answer(401, r#"{"error":{"message":"Incorrect API key provided"}}"#.to_owned());
    check_aborts(&fault, ErrorClass::Auth, &["401", "the key was not accepted", "it must be a key for"]);
}

#[test]
fn status_403_aborts_and_names_the_credential() {
    let fault = Fault::Answer(403, r#"{"error":{"message":"no access to this model"}}"#.to_owned());
    check_aborts(&fault, ErrorClass::Auth, &["403", "the key was not accepted"]);
}

#[test]
fn status_402_aborts_and_reports_missing_credit() {
    let fault = Fault::Answer(402, r#"{"error":{"message":"Insufficient balance"}}"#.to_owned());
    check_aborts(&fault, ErrorClass::Quota, &["402", "add credit"]);
}

#[test]
fn an_unset_key_variable_aborts_and_is_named() {
    let fixture = Fixture::new();
    let url = format!("{}/v1", fixture.summary.url());
    let first = summary_model_at(&url, "little", KeySource::Env("FANFOLD_TEST_NOT_SET".to_owned()));
    let outcome = fixture.summarise(
        &SummaryModels {
            models: vec![first, summary_model(&fixture.main, "large")],
            abort_on_failure: false,
        },
        true,
    );
    assert!(matches!(&outcome, JobOutcome::Aborted(_)), "{outcome}");
    assert!(outcome.to_string().contains("FANFOLD_TEST_NOT_SET is not set"), "{outcome}");
    assert_eq!((fixture.summary.n_seen(), fixture.main.n_seen()), (0, 0));
    fixture.check_nothing_is_lost();
}

#[test]
fn status_429_falls_back_to_the_main_model() {
    check_fault(&Fault::Status(429), &["429", "too many requests", "try again in"]);
}

#[test]
fn status_500() {
    check_fault(&Fault::Status(500), &["500", "the provider failed", "try again later"]);
}

#[test]
fn status_529() {
    check_fault(&Fault::Status(529), &["529", "the provider failed"]);
}

#[test]
fn a_timeout() {
    check_fault(&Fault::Stall(Duration::from_secs(5)), &["it took too long"]);
}

#[test]
fn an_unknown_host_name() {
    let fixture = Fixture::new();
    let unreachable = || summary_model_at("http://nobody.invalid/v1", "little", KeySource::None);
    let before = (fixture.view(), fixture.resend());
    let outcome = fixture.summarise(
        &SummaryModels {
            models: vec![unreachable(), summary_model(&fixture.main, "large")],
            abort_on_failure: false,
        },
        false,
    );
    assert!(matches!(&outcome, JobOutcome::Written(written) if written.model == "large"), "{outcome}");
    assert!(outcome.to_string().contains("nobody.invalid"), "{outcome}");
    assert!(outcome.hint().unwrap().contains("check that http://nobody.invalid/v1"), "{:?}", outcome.hint());
    assert_eq!((fixture.view(), fixture.resend()), before);
    let fixture = Fixture::new();
    let outcome =
        fixture.summarise(&SummaryModels { models: vec![unreachable()], abort_on_failure: false }, false);
    assert!(matches!(&outcome, JobOutcome::Digest(_)), "{outcome}");
    fixture.check_nothing_is_lost();
}

#[test]
fn an_unknown_model() {
    let body = r#"{"error":{"message":"The model `little` does not exist","code":"model_not_found"}}"#;
    check_fault(
        &Fault::Answer(404, body.to_owned()),
        &["404", "there is no such model", "check the name `l"],
    );
}

/// Checks that an invalid answer is requested once more and then falls back to the main model.
fn check_flaw(answer: fn(&str) -> String, words: &str) {
    let fixture = Fixture::with(answer);
    check_main_model_writes(&fixture, &[words, "little wrote no valid summary", "set another `model`"]);
    check_tried(&fixture, |tried| tried["flaws"].as_array().unwrap().len() >= 2);
    let n_prompts = fixture.summary.n_seen();
    assert_eq!(n_prompts, 2, "one retry with the flaws");
    let fixture = Fixture::with(answer);
    let outcome = fixture.summarise(
        &SummaryModels { models: vec![summary_model(&fixture.summary, "little")], abort_on_failure: false },
        false,
    );
    assert!(matches!(&outcome, JobOutcome::Digest(_)), "{outcome}");
    fixture.check_nothing_is_lost();
}

#[test]
fn a_refusal_as_summary() {
    check_flaw(|_| REFUSAL.to_owned(), "refused");
}

#[test]
fn the_flaws_of_an_answer_are_recorded_although_the_retry_succeeds() {
    let n_prompts = std::sync::atomic::AtomicUsize::new(0);
    let fixture =
        Fixture::with(move |prompt| match n_prompts.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => REFUSAL.to_owned(),
            _ => good_summary(prompt),
        });
    let outcome = fixture.summarise_in_background();
    assert!(matches!(&outcome, JobOutcome::Written(written) if written.model == "little"), "{outcome}");
    assert_eq!(outcome.hint(), None);
    check_tried(&fixture, |tried| {
        let is_recorded = tried["flaws"] == serde_json::json!(["refused"]) && !tried["by"].is_null();
        is_recorded && tried["missed"].as_array().unwrap().is_empty()
    });
    assert_eq!(fixture.main.n_seen(), 0);
}

#[test]
fn a_summary_that_is_longer_than_its_source() {
    check_flaw(longer_than_its_source, "tokens and may have");
}

#[test]
fn an_invented_user_quote() {
    check_flaw(with_a_made_up_quote, "the user never said");
}

#[test]
fn a_summary_without_its_sections() {
    check_flaw(
        |_| "They looked at some files and all was well in the end.".to_owned(),
        "headings are missing",
    );
}

#[test]
fn abort_on_failure_aborts_on_any_failure() {
    for fault in [Fault::Status(500), Fault::HangUp, Fault::Status(429)] {
        let fixture = Fixture::new();
        fixture.fail_both_models(&fault);
        let before = (fixture.view(), fixture.resend());
        let outcome = fixture.summarise(&SummaryModels { abort_on_failure: true, ..fixture.models() }, true);
        assert!(matches!(&outcome, JobOutcome::Aborted(failures) if failures.len() == 2), "{outcome}");
        assert!(outcome.to_string().contains("nothing was changed"), "{outcome}");
        assert_eq!((fixture.view(), fixture.resend()), before);
        assert!(fixture.events("fold_asked").is_empty());
        fixture.check_nothing_is_lost();
    }
}

#[test]
fn no_model_is_configured() {
    let fixture = Fixture::new();
    let outcome = fixture.summarise(&SummaryModels::default(), true);
    assert_eq!(outcome, JobOutcome::NoModel);
    assert_eq!(outcome.to_string(), "no model is set that writes summaries");
    assert!(outcome.hint().unwrap().contains("[summary]"));
    assert!(fixture.events("rested").is_empty());
}

#[test]
fn a_prompt_that_is_too_long_is_split() {
    let fixture = Fixture::new();
    let body = r#"{"error":{"message":"This model's maximum context length is 2000 tokens. However, your messages resulted in 3500 tokens.","code":"context_length_exceeded"}}"#;
    fixture.fail_summary_model(Fault::Answer(400, body.to_owned()));
    let outcome = fixture.summarise_in_background();
    assert!(matches!(&outcome, JobOutcome::Written(written) if written.model == "little"), "{outcome}");
    let seen = fixture.summary.seen();
    let longest = seen[1..].iter().map(|seen| seen.body.len()).max().unwrap();
    assert!(seen.len() > 2 && longest < seen[0].body.len(), "{} after {}", longest, seen[0].body.len());
}

#[test]
fn the_main_model_is_called_with_its_own_window() {
    let fixture = Fixture::new();
    let body = r#"{"error":{"message":"This model's maximum context length is 10 tokens. However, your messages resulted in 3500 tokens.","code":"context_length_exceeded"}}"#;
    (0..4).for_each(|_| fixture.fail_summary_model(Fault::Answer(400, body.to_owned())));
    let outcome = fixture.summarise_in_background();
    assert!(matches!(&outcome, JobOutcome::Written(written) if written.model == "large"), "{outcome}");
    let alone = Fixture::new();
    let only = SummaryModels { models: vec![summary_model(&alone.main, "large")], abort_on_failure: false };
    assert!(matches!(alone.summarise(&only, false), JobOutcome::Written(_)));
    assert_eq!(fixture.main.n_seen(), alone.main.n_seen(), "as many prompts as without the summary model");
}

#[test]
fn a_truncated_answer_is_rejected() {
    let fixture = Fixture::new();
    let content = serde_json::to_string(&good_summary("- files: src/a.rs")).unwrap();
    let body = format!(
        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":{content}}},"finish_reason":"length"}}]}}"#
    );
    (0..2).for_each(|_| fixture.fail_summary_model(Fault::Answer(200, body.clone())));
    check_main_model_writes(&fixture, &["little wrote no valid summary", "cut off before its end"]);
    assert_eq!(fixture.summary.n_seen(), 2, "one retry for a shorter answer");
    assert!(String::from_utf8_lossy(&fixture.summary.seen()[1].body).contains("must be shorter"));
}

#[test]
fn the_next_fold_adds_the_summary_to_the_view() {
    let mut fixture = Fixture::with(good_summary);
    let control = Fixture::new();
    assert!(matches!(fixture.summarise_in_background(), JobOutcome::Written(_)));
    let mut control = control;
    let mut was_added = false;
    for n in (131..330).step_by(3) {
        let (with, without) = (fixture.send(n), control.send(n));
        let has_summary = fixture.view().contains("Summary of earlier steps, written by a model");
        assert!(has_summary || with == without, "after {n}");
        was_added |= has_summary;
    }
    assert!(was_added);
    fixture.check_nothing_is_lost();
}

#[test]
fn a_summary_by_hand_is_in_the_next_view() {
    let fixture = Fixture::new();
    let outcome = fixture.summarise_by_hand();
    assert!(matches!(&outcome, JobOutcome::Written(written) if written.model == "little"), "{outcome}");
    fixture.resend();
    assert!(fixture.view().contains("Summary of earlier steps, written by a model"), "{}", fixture.view());
    fixture.check_nothing_is_lost();
}
