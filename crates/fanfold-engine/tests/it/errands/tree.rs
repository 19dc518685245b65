//! Each way in which a summary may fail, over HTTP: nothing is lost, and what a person reads says what happened.

use std::time::Duration;

use fanfold_engine::{Ended, Missed, Ways};
use fanfold_provider::{ErrorClass, KeySource};
use fanfold_testkit::fakes::summaries::{
    REFUSAL, good_summary, longer_than_its_source, with_a_made_up_quote,
};
use fanfold_testkit::fakes::upstream::Fault;

use super::stage::{Stage, way, way_at};

/// What a summary model that fails leads to: the main model writes, and its fault is told.
fn check_the_main_model_writes(stage: &Stage, says: &[&str]) {
    let before = (stage.view(), stage.again());
    let ended = stage.by_itself();
    let Ended::Written(written) = &ended else { panic!("{ended}") };
    assert_eq!((written.model.as_str(), written.missed.len()), ("large", 1), "{ended}");
    let told = format!("{ended}\nhint: {}", ended.hint().unwrap());
    for words in says {
        assert!(told.contains(words), "`{words}` is not in: {told}");
    }
    // It is there, and nothing has changed yet: neither the view nor what a body becomes that is sent again.
    assert_eq!(stage.events("summarised").len(), 1);
    check_tried(stage, |tried| tried["missed"].as_array().unwrap().len() == 1 && !tried["by"].is_null());
    assert_eq!((stage.view(), stage.again()), before);
    stage.check_nothing_is_lost();
}

/// What went wrong is kept with the session, once.
fn check_tried(stage: &Stage, is_right: fn(&serde_json::Value) -> bool) {
    let tried = stage.events("tried");
    assert_eq!(tried.len(), 1);
    let tried = serde_json::from_str(&tried[0].body).unwrap();
    assert!(is_right(&tried), "{tried}");
}

/// What both models failing leads to: the digest alone, the view as it was.
fn check_the_digest_stands_alone(stage: &Stage, says: &[&str]) {
    let before = (stage.view(), stage.again());
    let ended = stage.by_itself();
    let Ended::Digest(missed) = &ended else { panic!("{ended}") };
    assert_eq!(missed.len(), 2, "{ended}");
    let told = format!("{ended}\nhint: {}", ended.hint().unwrap());
    for words in [&["the digest stands alone"], says].concat() {
        assert!(told.contains(words), "`{words}` is not in: {told}");
    }
    assert_eq!(stage.events("summarised").len(), 0);
    check_tried(stage, |tried| tried["missed"].as_array().unwrap().len() == 2 && tried["by"].is_null());
    assert_eq!((stage.view(), stage.again()), before);
    stage.check_nothing_is_lost();
}

/// A fault of the provider: first of the summary model alone, then of both.
fn check_fault(fault: &Fault, says: &[&str]) {
    let stage = Stage::new();
    stage.fault(fault.clone());
    check_the_main_model_writes(&stage, says);
    let stage = Stage::new();
    stage.faults(fault);
    check_the_digest_stands_alone(&stage, says);
}

/// A credential that does not work: nothing changes, nobody else is asked.
fn check_aborts(fault: &Fault, class: ErrorClass, says: &[&str]) {
    for is_by_hand in [false, true] {
        let stage = Stage::new();
        stage.fault(fault.clone());
        let before = (stage.view(), stage.again());
        let ended = stage.ask(&stage.ways(), is_by_hand);
        let Ended::Aborted(missed) = &ended else { panic!("{ended}") };
        assert!(matches!(&missed[..], [Missed::Fault(fault)] if fault.class == class), "{ended}");
        let told = format!("{ended}\nhint: {}", ended.hint().unwrap());
        // The command is named, and the key that it prints is not.
        for words in [&["nothing was changed", "`echo …`"], says].concat() {
            assert!(told.contains(words), "`{words}` is not in: {told}");
        }
        assert!(!told.contains("not-a-key"), "{told}");
        assert_eq!(stage.main.n_seen(), 0);
        assert_eq!((stage.events("summarised").len(), stage.events("fold_asked").len()), (0, 0));
        assert_eq!((stage.view(), stage.again()), before);
        stage.check_nothing_is_lost();
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
fn bytes_that_are_no_json() {
    check_fault(&Fault::Garbage, &["the answer is broken"]);
}

#[test]
fn a_stream_that_is_closed_early() {
    check_fault(&Fault::Disconnect(3), &["the answer is broken"]);
}

#[test]
fn a_connection_that_is_closed_without_a_word() {
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
fn status_402_aborts_and_says_that_credit_is_missing() {
    let fault = Fault::Answer(402, r#"{"error":{"message":"Insufficient balance"}}"#.to_owned());
    check_aborts(&fault, ErrorClass::Quota, &["402", "add credit"]);
}

#[test]
fn a_variable_that_is_not_set_aborts_and_is_named() {
    let stage = Stage::new();
    let url = format!("{}/v1", stage.summary.url());
    let first = way_at(&url, "little", KeySource::Env("FANFOLD_TEST_NOT_SET".to_owned()));
    let ended = stage.ask(&Ways { ways: vec![first, way(&stage.main, "large")], aborts: false }, true);
    assert!(matches!(&ended, Ended::Aborted(_)), "{ended}");
    assert!(ended.to_string().contains("FANFOLD_TEST_NOT_SET is not set"), "{ended}");
    assert_eq!((stage.summary.n_seen(), stage.main.n_seen()), (0, 0));
    stage.check_nothing_is_lost();
}

#[test]
fn status_429_goes_on_to_the_main_model() {
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
fn a_model_that_does_not_answer_in_time() {
    check_fault(&Fault::Stall(Duration::from_secs(5)), &["it took too long"]);
}

#[test]
fn a_name_that_nobody_knows() {
    let stage = Stage::new();
    let lost = || way_at("http://nobody.invalid/v1", "little", KeySource::None);
    let before = (stage.view(), stage.again());
    let ended = stage.ask(&Ways { ways: vec![lost(), way(&stage.main, "large")], aborts: false }, false);
    assert!(matches!(&ended, Ended::Written(written) if written.model == "large"), "{ended}");
    assert!(ended.to_string().contains("nobody.invalid"), "{ended}");
    assert!(ended.hint().unwrap().contains("check that http://nobody.invalid/v1"), "{:?}", ended.hint());
    assert_eq!((stage.view(), stage.again()), before);
    let stage = Stage::new();
    let ended = stage.ask(&Ways { ways: vec![lost()], aborts: false }, false);
    assert!(matches!(&ended, Ended::Digest(_)), "{ended}");
    stage.check_nothing_is_lost();
}

#[test]
fn a_model_that_is_not_there() {
    let body = r#"{"error":{"message":"The model `little` does not exist","code":"model_not_found"}}"#;
    check_fault(
        &Fault::Answer(404, body.to_owned()),
        &["404", "there is no such model", "check the name `l"],
    );
}

/// Answers that are no summary: asked for twice, then of the main model.
fn check_flaw(says: fn(&str) -> String, words: &str) {
    let stage = Stage::with(says);
    check_the_main_model_writes(
        &stage,
        &[words, "little wrote no summary that will do", "set another `model`"],
    );
    check_tried(&stage, |tried| tried["flaws"].as_array().unwrap().len() >= 2);
    let n_asked = stage.summary.n_seen();
    assert_eq!(n_asked, 2, "asked once more with what was wrong, and no more");
    let stage = Stage::with(says);
    let ended = stage.ask(&Ways { ways: vec![way(&stage.summary, "little")], aborts: false }, false);
    assert!(matches!(&ended, Ended::Digest(_)), "{ended}");
    stage.check_nothing_is_lost();
}

#[test]
fn a_refusal_as_summary() {
    check_flaw(|_| REFUSAL.to_owned(), "refused");
}

/// What is better the second time is a summary; what was wrong with it the first time is kept all the same.
#[test]
fn a_refusal_that_is_followed_by_a_summary_is_counted() {
    let n_asked = std::sync::atomic::AtomicUsize::new(0);
    let stage = Stage::with(move |shown| match n_asked.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 => REFUSAL.to_owned(),
        _ => good_summary(shown),
    });
    let ended = stage.by_itself();
    assert!(matches!(&ended, Ended::Written(written) if written.model == "little"), "{ended}");
    assert_eq!(ended.hint(), None);
    check_tried(&stage, |tried| {
        let is_told = tried["flaws"] == serde_json::json!(["refused"]) && !tried["by"].is_null();
        is_told && tried["missed"].as_array().unwrap().is_empty()
    });
    assert_eq!(stage.main.n_seen(), 0);
}

#[test]
fn a_summary_that_is_longer_than_its_source() {
    check_flaw(longer_than_its_source, "tokens and may have");
}

#[test]
fn a_user_quote_that_is_made_up() {
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
fn any_failure_aborts_where_that_is_set() {
    for fault in [Fault::Status(500), Fault::HangUp, Fault::Status(429)] {
        let stage = Stage::new();
        stage.faults(&fault);
        let before = (stage.view(), stage.again());
        let ended = stage.ask(&Ways { aborts: true, ..stage.ways() }, true);
        assert!(matches!(&ended, Ended::Aborted(missed) if missed.len() == 2), "{ended}");
        assert!(ended.to_string().contains("nothing was changed"), "{ended}");
        assert_eq!((stage.view(), stage.again()), before);
        assert!(stage.events("fold_asked").is_empty());
        stage.check_nothing_is_lost();
    }
}

#[test]
fn no_model_is_set() {
    let stage = Stage::new();
    let ended = stage.ask(&Ways::default(), true);
    assert_eq!(ended, Ended::NotSet);
    assert_eq!(ended.to_string(), "no model is set that writes summaries");
    assert!(ended.hint().unwrap().contains("[summary]"));
    assert!(stage.events("rested").is_empty());
}

#[test]
fn a_prompt_that_is_too_long_is_asked_in_smaller_parts() {
    let stage = Stage::new();
    let body = r#"{"error":{"message":"This model's maximum context length is 2000 tokens. However, your messages resulted in 3500 tokens.","code":"context_length_exceeded"}}"#;
    stage.fault(Fault::Answer(400, body.to_owned()));
    let ended = stage.by_itself();
    assert!(matches!(&ended, Ended::Written(written) if written.model == "little"), "{ended}");
    let seen = stage.summary.seen();
    let longest = seen[1..].iter().map(|seen| seen.body.len()).max().unwrap();
    assert!(seen.len() > 2 && longest < seen[0].body.len(), "{} after {}", longest, seen[0].body.len());
}

#[test]
fn the_main_model_is_asked_by_its_own_window_after_a_small_one_has_failed() {
    let stage = Stage::new();
    let body = r#"{"error":{"message":"This model's maximum context length is 10 tokens. However, your messages resulted in 3500 tokens.","code":"context_length_exceeded"}}"#;
    (0..4).for_each(|_| stage.fault(Fault::Answer(400, body.to_owned())));
    let ended = stage.by_itself();
    assert!(matches!(&ended, Ended::Written(written) if written.model == "large"), "{ended}");
    let alone = Stage::new();
    let only = Ways { ways: vec![way(&alone.main, "large")], aborts: false };
    assert!(matches!(alone.ask(&only, false), Ended::Written(_)));
    assert_eq!(stage.main.n_seen(), alone.main.n_seen(), "as many questions as without the small one");
}

#[test]
fn an_answer_that_was_cut_off_is_no_summary() {
    let stage = Stage::new();
    let said = serde_json::to_string(&good_summary("- files: src/a.rs")).unwrap();
    let body = format!(
        r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":{said}}},"finish_reason":"length"}}]}}"#
    );
    (0..2).for_each(|_| stage.fault(Fault::Answer(200, body.clone())));
    check_the_main_model_writes(&stage, &["little wrote no summary that will do", "cut off before its end"]);
    assert_eq!(stage.summary.n_seen(), 2, "asked once more, for something shorter");
    assert!(String::from_utf8_lossy(&stage.summary.seen()[1].body).contains("must be shorter"));
}

#[test]
fn a_summary_stands_beside_the_digest_from_the_next_fold_on() {
    let mut stage = Stage::with(good_summary);
    let control = Stage::new();
    assert!(matches!(stage.by_itself(), Ended::Written(_)));
    let mut control = control;
    let mut has_come = false;
    for n in (131..330).step_by(3) {
        let (with, without) = (stage.goes_on(n), control.goes_on(n));
        let is_there = stage.view().contains("Summary of earlier steps, written by a model");
        assert!(is_there || with == without, "after {n}");
        has_come |= is_there;
    }
    assert!(has_come);
    stage.check_nothing_is_lost();
}

#[test]
fn a_summary_by_hand_stands_there_at_once() {
    let stage = Stage::new();
    let ended = stage.by_hand();
    assert!(matches!(&ended, Ended::Written(written) if written.model == "little"), "{ended}");
    stage.again();
    assert!(stage.view().contains("Summary of earlier steps, written by a model"), "{}", stage.view());
    stage.check_nothing_is_lost();
}
