//! Backoffs of models after failures. They are stored, so that all processes respect them.

use std::time::Duration;

use fanfold_engine::{JobOutcome, LoggedEvent, SessionEvent, SummaryModels, SummaryTask};
use fanfold_testkit::fakes::upstream::Fault;

use super::fixture::{Fixture, summary_model};
use crate::setup::id;

const STALL: Fault = Fault::Stall(Duration::from_secs(5));

/// The summary model without a fallback.
fn one_model(fixture: &Fixture) -> SummaryModels {
    SummaryModels { models: vec![summary_model(&fixture.summary, "little")], abort_on_failure: false }
}

/// The duration of the last recorded backoff, in seconds.
fn last_backoff(fixture: &Fixture) -> i64 {
    let last = fixture.events("rested").pop().unwrap();
    match LoggedEvent::decode(&last).unwrap().event {
        SessionEvent::ModelPaused { rest, .. } => (rest.until - last.at.0) / 1000,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_failed_model_is_not_called_during_its_backoff() {
    let fixture = Fixture::new();
    fixture.fail_summary_model(Fault::Status(500));
    assert!(matches!(fixture.summarise(&one_model(&fixture), false), JobOutcome::Digest(_)));
    assert_eq!((fixture.summary.n_seen(), last_backoff(&fixture)), (1, 60));
    let outcome = fixture.summarise(&one_model(&fixture), false);
    assert!(
        matches!(&outcome, JobOutcome::BackingOff { why, .. } if why.contains("the provider failed (500)")),
        "{outcome}"
    );
    assert!(outcome.to_string().starts_with("no summary is requested until 20"), "{outcome}");
    assert!(outcome.hint().unwrap().contains("--summarise"));
    fixture.clock.advance(59);
    assert!(matches!(fixture.summarise(&one_model(&fixture), false), JobOutcome::BackingOff { .. }));
    assert_eq!(fixture.summary.n_seen(), 1);
    fixture.clock.advance(1);
    assert!(matches!(fixture.summarise(&one_model(&fixture), false), JobOutcome::Written(_)));
}

#[test]
fn another_process_respects_the_backoff() {
    let fixture = Fixture::new();
    fixture.fail_summary_model(Fault::Status(500));
    assert!(matches!(fixture.summarise(&one_model(&fixture), false), JobOutcome::Digest(_)));
    let other = fixture.other_engine();
    crate::setup::request(
        &other,
        "s",
        &super::fixture::body(fixture.n_messages),
        &crate::setup::terms("fanfold", super::fixture::WINDOW),
    );
    let task = SummaryTask { session: &id("s"), focus: "", is_by_hand: false };
    let outcome = other.summarise(&task, &one_model(&fixture), &mut |_| {}).unwrap();
    assert!(matches!(outcome, JobOutcome::BackingOff { .. }), "{outcome}");
}

#[test]
fn consecutive_timeouts_back_off_one_then_five_then_fifteen_minutes() {
    let fixture = Fixture::new();
    let mut backoffs = Vec::new();
    for _ in 0..4 {
        fixture.fail_summary_model(STALL);
        let outcome = fixture.summarise(&one_model(&fixture), false);
        assert!(matches!(&outcome, JobOutcome::Digest(_)), "{outcome}");
        backoffs.push(last_backoff(&fixture));
        fixture.clock.advance(last_backoff(&fixture));
    }
    assert_eq!(backoffs, [60, 300, 900, 900]);
}

#[test]
fn a_truncated_answer_backs_off_half_a_minute() {
    for fault in
        [Fault::Garbage, Fault::Disconnect(3), Fault::Answer(200, "{\"choices\":[{\"mess".to_owned())]
    {
        let fixture = Fixture::new();
        fixture.fail_summary_model(fault.clone());
        fixture.summarise(&one_model(&fixture), false);
        assert_eq!(last_backoff(&fixture), 30, "{fault:?}");
    }
}

#[test]
fn the_retry_delay_of_the_provider_is_respected() {
    let fixture = Fixture::new();
    let message = "Rate limit reached. Please try again in 6m0s.";
    fixture.fail_summary_model(Fault::Answer(
        429,
        format!(r#"{{"error":{{"message":"{message}","code":"rate_limit_exceeded"}}}}"#),
    ));
    let outcome = fixture.summarise(&one_model(&fixture), false);
    assert_eq!(last_backoff(&fixture), 360, "{outcome}");
}

#[test]
fn a_job_by_hand_ignores_the_backoff() {
    let fixture = Fixture::new();
    fixture.fail_summary_model(STALL);
    fixture.summarise(&one_model(&fixture), false);
    assert!(matches!(fixture.summarise(&one_model(&fixture), false), JobOutcome::BackingOff { .. }));
    // A timeout by hand restarts the count of consecutive timeouts.
    fixture.fail_summary_model(STALL);
    fixture.summarise(&one_model(&fixture), true);
    assert_eq!(last_backoff(&fixture), 60);
    assert!(matches!(fixture.summarise(&one_model(&fixture), true), JobOutcome::Written(_)));
}

#[test]
fn a_success_resets_the_count_of_timeouts() {
    let mut fixture = Fixture::new();
    for _ in 0..2 {
        fixture.fail_summary_model(STALL);
        fixture.summarise(&one_model(&fixture), false);
        fixture.clock.advance(last_backoff(&fixture));
    }
    assert!(matches!(fixture.summarise(&one_model(&fixture), false), JobOutcome::Written(_)));
    fixture.send(260);
    fixture.fail_summary_model(STALL);
    let outcome = fixture.summarise(&one_model(&fixture), false);
    assert!(matches!(&outcome, JobOutcome::Digest(_)), "{outcome}");
    assert_eq!(last_backoff(&fixture), 60, "the first timeout after a success");
}

#[test]
fn the_backoff_of_a_model_does_not_apply_to_another_model() {
    let fixture = Fixture::new();
    fixture.fail_summary_model(Fault::Status(500));
    fixture.summarise(&one_model(&fixture), false);
    let other =
        SummaryModels { models: vec![summary_model(&fixture.summary, "other")], abort_on_failure: false };
    assert!(matches!(fixture.summarise(&other, false), JobOutcome::Written(_)));
}

#[test]
fn the_main_model_is_called_during_the_backoff_of_the_summary_model() {
    let mut fixture = Fixture::new();
    fixture.fail_summary_model(Fault::Status(500));
    assert!(
        matches!(fixture.summarise_in_background(), JobOutcome::Written(written) if written.model == "large")
    );
    fixture.send(260);
    let outcome = fixture.summarise_in_background();
    assert!(matches!(&outcome, JobOutcome::Written(written) if written.model == "large"), "{outcome}");
    assert_eq!(fixture.summary.n_seen(), 1);
}

#[test]
fn a_refused_credential_causes_a_backoff_that_no_other_model_bypasses() {
    let fixture = Fixture::new();
    fixture.fail_summary_model(Fault::Answer(
        401,
        "{\"error\":{\"message\":\"Incorrect API key provided\"}}".to_owned(),
    ));
    assert!(matches!(fixture.summarise_in_background(), JobOutcome::Aborted(_)));
    let outcome = fixture.summarise_in_background();
    assert!(
        matches!(&outcome, JobOutcome::BackingOff { why, .. } if why.contains("the key was not accepted")),
        "{outcome}"
    );
    assert_eq!((fixture.summary.n_seen(), fixture.main.n_seen()), (1, 0));
}
