//! Summaries in the store: requests made again, failures after a success, forks, rewinds, two at once.

use std::sync::Arc;

use fanfold_core::Tokens;
use fanfold_engine::{Ended, Note, Noted, Wanted, Way, Ways, Writer};
use fanfold_provider::{ErrorClass, ModelAnswer, Prompt, ProviderError as Failed};
use fanfold_testkit::fakes::summaries::good_summary;
use fanfold_testkit::fakes::upstream::Fault;

use super::stage::{Stage, WINDOW, body};
use crate::setting::{id, request, terms, terms_of};

const MARK: &str = "Summary of earlier steps, written by a model";

/// A model that is a function.
struct Model<F>(F);

impl<F: Fn(&Prompt) -> Result<String, Failed> + Send + Sync> Writer for Model<F> {
    fn write(&self, prompt: &Prompt) -> Result<ModelAnswer, Failed> {
        (self.0)(prompt).map(|text| ModelAnswer { text, ..ModelAnswer::default() })
    }
}

pub(super) fn ways(model: impl Fn(&Prompt) -> Result<String, Failed> + Send + Sync + 'static) -> Ways {
    let way = Way {
        model: "function".to_owned(),
        place: "here".to_owned(),
        window: Tokens(4_000),
        writer: Arc::new(Model(model)),
    };
    Ways { ways: vec![way], aborts: false }
}

/// Every request of the session can be made again, and an engine that comes anew says what this one says.
fn check_replayed(stage: &Stage, sent: &[String]) {
    for (i, body) in sent.iter().enumerate() {
        let rebuilt = stage.engine.rebuild(&id("s"), i + 1, &terms_of).unwrap();
        assert!(rebuilt.is_same && rebuilt.body == *body, "request {}", i + 1);
    }
    let ours = stage.again();
    let theirs = request(&stage.other_engine(), "s", &body(stage.n_messages), &terms("fanfold", WINDOW)).body;
    assert_eq!(ours, theirs);
}

#[test]
fn requests_are_made_again_byte_for_byte_whenever_summaries_came() {
    let mut stage = Stage::new();
    let first = stage.again();
    let mut sent = vec![first.clone(), first];
    let mut n_seen = 0;
    for (i, n) in (131..400).step_by(6).enumerate() {
        sent.push(stage.goes_on(n));
        let is_there = stage.view().contains(MARK);
        n_seen += usize::from(is_there);
        if i % 4 == 1 {
            let ended = if i % 8 == 1 { stage.by_itself() } else { stage.by_hand() };
            assert!(matches!(ended, Ended::Written(_) | Ended::Nothing), "{ended}");
            if i % 8 != 1 {
                sent.push(stage.again());
            }
        }
    }
    assert!(n_seen > 10, "{n_seen}");
    check_replayed(&stage, &sent);
    stage.check_nothing_is_lost();
}

#[test]
fn a_body_that_is_sent_again_is_sent_as_it_was_though_a_summary_came() {
    let mut stage = Stage::new();
    for n in (140..400).step_by(13) {
        let first = stage.goes_on(n);
        stage.by_itself();
        assert_eq!(stage.again(), first, "after {n}");
        stage.engine.forget();
        assert_eq!(stage.again(), first, "after {n}, replayed");
    }
    assert!(stage.events("summarised").len() > 2);
}

/// A summary that comes while the next request is under way: another process has sent more by then.
#[test]
fn a_summary_that_comes_late_changes_no_request_that_has_left() {
    let stage = Stage::new();
    let other = stage.other_engine();
    let sent = std::sync::Mutex::new(Vec::new());
    let engine = Arc::new(other);
    let busy = Arc::clone(&engine);
    let bodies: &std::sync::Mutex<Vec<String>> = &sent;
    let wanted = Wanted { session: &id("s"), focus: "", is_by_hand: false };
    let mut n = stage.n_messages;
    let ways = ways(|prompt| Ok(good_summary(&prompt.user)));
    let ended = stage.engine.summarise(&wanted, &ways, &mut |_| {
        n += 60;
        bodies.lock().unwrap().push(request(&busy, "s", &body(n), &terms("fanfold", WINDOW)).body);
    });
    assert!(matches!(ended, Ok(Ended::Written(_))), "{ended:?}");
    let sent = sent.into_inner().unwrap();
    assert!(!sent.is_empty());
    let again = request(&engine, "s", &body(n), &terms("fanfold", WINDOW)).body;
    assert_eq!(again, sent[sent.len() - 1]);
    let replayed = request(&stage.other_engine(), "s", &body(n), &terms("fanfold", WINDOW)).body;
    assert_eq!(replayed, again);
}

#[test]
fn a_failed_summary_does_not_cost_the_one_before() {
    let mut stage = Stage::new();
    assert!(matches!(stage.by_hand(), Ended::Written(_)));
    stage.again();
    let place = |view: &str| view.split(MARK).nth(1).map(str::to_owned);
    let first = place(&stage.view()).unwrap();
    assert!(!first.is_empty());
    stage.clock.go_on(3600);
    for n in [200, 260, 320] {
        stage.goes_on(n);
        stage.faults(&Fault::Status(429));
        let ended = stage.by_itself();
        assert!(matches!(&ended, Ended::Digest(_)), "{ended}");
        stage.clock.go_on(3600);
        assert!(stage.view().contains(MARK), "after {n}");
    }
    assert_eq!(stage.events("summarised").len(), 1);
}

#[test]
fn the_next_summary_goes_on_with_the_one_before() {
    let mut stage = Stage::new();
    stage.by_hand();
    stage.goes_on(260);
    let shown = Arc::new(std::sync::Mutex::new(String::new()));
    let seen = Arc::clone(&shown);
    let ways = ways(move |prompt| {
        seen.lock().unwrap().push_str(&prompt.user);
        Ok(good_summary(&prompt.user))
    });
    let ended = stage.ask(&ways, true);
    assert!(matches!(&ended, Ended::Written(_)), "{ended}");
    let shown = shown.lock().unwrap();
    assert!(shown.contains("To find out what goes wrong, and to mend it."), "the record so far");
    assert!(!shown.contains("stage 2 line 3 takes"), "what it tells of is not shown again");
    let upto: Vec<u32> = stage
        .events("summarised")
        .iter()
        .filter_map(|event| match Noted::read(event)?.note {
            Note::Summarised(summary) => Some(summary.upto),
            _ => None,
        })
        .collect();
    assert!(upto.len() == 2 && upto[0] < upto[1], "{upto:?}");
}

#[test]
fn a_topic_by_hand_brings_another_summary_of_everything() {
    let stage = Stage::new();
    assert!(matches!(stage.by_hand(), Ended::Written(_)));
    let shown = Arc::new(std::sync::Mutex::new(String::new()));
    let seen = Arc::clone(&shown);
    let ways = ways(move |prompt| {
        seen.lock().unwrap().push_str(&prompt.user);
        Ok(good_summary(&prompt.user))
    });
    let ask = |focus: &str, is_by_hand: bool| {
        let wanted = Wanted { session: &id("s"), focus, is_by_hand };
        stage.engine.summarise(&wanted, &ways, &mut |_| {}).unwrap()
    };
    // Without a topic there is nothing new to tell, and by itself none is begun anew.
    assert!(matches!(ask("", true), Ended::Nothing));
    assert!(matches!(ask("stage 3", false), Ended::Nothing));
    assert!(shown.lock().unwrap().is_empty(), "nobody is asked");
    let ended = ask("stage 3", true);
    assert!(matches!(ended, Ended::Written(_)), "{ended}");
    let shown = shown.lock().unwrap();
    assert!(shown.contains("The user wants this kept above all: stage 3"), "{shown}");
    assert!(shown.contains("stage 0 line 3 takes"), "it is of everything: {shown}");
    assert_eq!(stage.events("summarised").len(), 2);
}

#[test]
fn one_errand_for_a_session_at_a_time() {
    let stage = Stage::new();
    let wanted = Wanted { session: &id("s"), focus: "", is_by_hand: false };
    let other = stage.other_engine();
    request(&other, "s", &body(stage.n_messages), &terms("fanfold", WINDOW));
    let careful_ways = ways(|prompt| Ok(good_summary(&prompt.user)));
    let mut second = None;
    let first = stage.engine.summarise(&wanted, &careful_ways, &mut |_| {
        second.get_or_insert_with(|| other.summarise(&wanted, &careful_ways, &mut |_| {}).unwrap());
    });
    assert!(matches!(first, Ok(Ended::Written(_))), "{first:?}");
    assert!(matches!(&second, Some(Ended::Busy(_))), "{second:?}");
    // It is given back: with news, another one may be written.
    let ended = stage.by_itself();
    assert!(matches!(ended, Ended::Nothing), "{ended}");
}

#[test]
fn an_errand_that_died_with_its_process_is_in_nobodys_way() {
    let stage = Stage::new();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // No process has this number: it is above the largest that Linux gives.
    let dead = format!("{}-{}-0a1b2c3d", host.trim(), u32::MAX);
    let key = id("errand of s");
    let now = fanfold_engine::Clock::now(&*stage.clock);
    stage.engine.store().lock(&key, &dead, 600_000, now).unwrap();
    let ended = stage.by_itself();
    let is_linux = std::path::Path::new("/proc/self").exists();
    assert_eq!(matches!(ended, Ended::Written(_)), is_linux, "{ended}");
}

#[test]
fn a_summary_of_what_was_taken_back_is_not_kept() {
    let stage = Stage::new();
    let wanted = Wanted { session: &id("s"), focus: "", is_by_hand: false };
    let ways = ways(|prompt| Ok(good_summary(&prompt.user)));
    let other = stage.other_engine();
    let mut edited = crate::setting::long_chat(200);
    edited.truncate(stage.n_messages);
    edited[1]["content"] = "Something else altogether.".into();
    let edited = crate::setting::chat(&edited);
    let ended = stage.engine.summarise(&wanted, &ways, &mut |_| {
        request(&other, "s", &edited, &terms("fanfold", WINDOW));
    });
    assert!(matches!(ended, Ok(Ended::Overtaken)), "{ended:?}");
    assert!(stage.events("summarised").is_empty());
}

#[test]
fn what_fails_for_good_is_told_by_a_model_that_is_a_function_too() {
    let stage = Stage::new();
    let ended = stage.ask(&ways(|_| Err(Failed::new(ErrorClass::Server, "it is on fire"))), false);
    assert!(ended.to_string().contains("it is on fire"), "{ended}");
}
