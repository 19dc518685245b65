//! Who is left alone after a failure, and until when. It is kept in the store, so another process knows it, too.

use std::time::Duration;

use fanfold_engine::{Ended, Note, Noted, Wanted, Ways};
use fanfold_testkit::fakes::upstream::Fault;

use super::stage::{Stage, way};
use crate::setting::id;

const STALL: Fault = Fault::Stall(Duration::from_secs(5));

fn alone(stage: &Stage) -> Ways {
    Ways { ways: vec![way(&stage.summary, "little")], aborts: false }
}

/// For how long the last one to rest rests, in seconds.
fn rest(stage: &Stage) -> i64 {
    let last = stage.events("rested").pop().unwrap();
    match Noted::read(&last).unwrap().note {
        Note::Rested { rest, .. } => (rest.until - last.at.0) / 1000,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_model_that_failed_is_not_asked_again_until_it_has_rested() {
    let stage = Stage::new();
    stage.fault(Fault::Status(500));
    assert!(matches!(stage.ask(&alone(&stage), false), Ended::Digest(_)));
    assert_eq!((stage.summary.n_seen(), rest(&stage)), (1, 60));
    let ended = stage.ask(&alone(&stage), false);
    assert!(
        matches!(&ended, Ended::Resting { why, .. } if why.contains("the provider failed (500)")),
        "{ended}"
    );
    assert!(ended.to_string().starts_with("no summary is asked for until 20"), "{ended}");
    assert!(ended.hint().unwrap().contains("--summarise"));
    stage.clock.go_on(59);
    assert!(matches!(stage.ask(&alone(&stage), false), Ended::Resting { .. }));
    assert_eq!(stage.summary.n_seen(), 1);
    stage.clock.go_on(1);
    assert!(matches!(stage.ask(&alone(&stage), false), Ended::Written(_)));
}

#[test]
fn another_process_knows_who_rests() {
    let stage = Stage::new();
    stage.fault(Fault::Status(500));
    assert!(matches!(stage.ask(&alone(&stage), false), Ended::Digest(_)));
    let other = stage.other_engine();
    crate::setting::request(
        &other,
        "s",
        &super::stage::body(stage.n_messages),
        &crate::setting::terms("fanfold", super::stage::WINDOW),
    );
    let wanted = Wanted { session: &id("s"), focus: "", is_by_hand: false };
    let ended = other.summarise(&wanted, &alone(&stage), &mut |_| {}).unwrap();
    assert!(matches!(ended, Ended::Resting { .. }), "{ended}");
}

#[test]
fn timeouts_in_a_row_rest_one_then_five_then_fifteen_minutes() {
    let stage = Stage::new();
    let mut rests = Vec::new();
    for _ in 0..4 {
        stage.fault(STALL);
        let ended = stage.ask(&alone(&stage), false);
        assert!(matches!(&ended, Ended::Digest(_)), "{ended}");
        rests.push(rest(&stage));
        stage.clock.go_on(rest(&stage));
    }
    assert_eq!(rests, [60, 300, 900, 900]);
}

#[test]
fn an_answer_that_broke_off_rests_half_a_minute() {
    for fault in
        [Fault::Garbage, Fault::Disconnect(3), Fault::Answer(200, "{\"choices\":[{\"mess".to_owned())]
    {
        let stage = Stage::new();
        stage.fault(fault.clone());
        stage.ask(&alone(&stage), false);
        assert_eq!(rest(&stage), 30, "{fault:?}");
    }
}

#[test]
fn what_the_provider_says_of_coming_again_is_honoured() {
    let stage = Stage::new();
    let words = "Rate limit reached. Please try again in 6m0s.";
    stage.fault(Fault::Answer(
        429,
        format!(r#"{{"error":{{"message":"{words}","code":"rate_limit_exceeded"}}}}"#),
    ));
    let ended = stage.ask(&alone(&stage), false);
    assert_eq!(rest(&stage), 360, "{ended}");
}

#[test]
fn who_asks_by_hand_asks_whoever_rests() {
    let stage = Stage::new();
    stage.fault(STALL);
    stage.ask(&alone(&stage), false);
    assert!(matches!(stage.ask(&alone(&stage), false), Ended::Resting { .. }));
    // By hand it is asked; a timeout then is the first of its row again.
    stage.fault(STALL);
    stage.ask(&alone(&stage), true);
    assert_eq!(rest(&stage), 60);
    assert!(matches!(stage.ask(&alone(&stage), true), Ended::Written(_)));
}

#[test]
fn a_success_ends_the_rest() {
    let mut stage = Stage::new();
    for _ in 0..2 {
        stage.fault(STALL);
        stage.ask(&alone(&stage), false);
        stage.clock.go_on(rest(&stage));
    }
    assert!(matches!(stage.ask(&alone(&stage), false), Ended::Written(_)));
    stage.goes_on(260);
    stage.fault(STALL);
    let ended = stage.ask(&alone(&stage), false);
    assert!(matches!(&ended, Ended::Digest(_)), "{ended}");
    assert_eq!(rest(&stage), 60, "the row begins anew");
}

#[test]
fn another_model_does_not_rest_for_the_one_before() {
    let stage = Stage::new();
    stage.fault(Fault::Status(500));
    stage.ask(&alone(&stage), false);
    let other = Ways { ways: vec![way(&stage.summary, "other")], aborts: false };
    assert!(matches!(stage.ask(&other, false), Ended::Written(_)));
}

#[test]
fn while_the_summary_model_rests_the_main_model_is_asked_at_once() {
    let mut stage = Stage::new();
    stage.fault(Fault::Status(500));
    assert!(matches!(stage.by_itself(), Ended::Written(written) if written.model == "large"));
    stage.goes_on(260);
    let ended = stage.by_itself();
    assert!(matches!(&ended, Ended::Written(written) if written.model == "large"), "{ended}");
    assert_eq!(stage.summary.n_seen(), 1);
}

#[test]
fn a_credential_that_was_refused_is_not_tried_again_at_once_nor_hidden() {
    let stage = Stage::new();
    stage.fault(Fault::Answer(401, "{\"error\":{\"message\":\"Incorrect API key provided\"}}".to_owned()));
    assert!(matches!(stage.by_itself(), Ended::Aborted(_)));
    let ended = stage.by_itself();
    assert!(
        matches!(&ended, Ended::Resting { why, .. } if why.contains("the key was not accepted")),
        "{ended}"
    );
    assert_eq!((stage.summary.n_seen(), stage.main.n_seen()), (1, 0));
}
