//! Summaries in the store: rebuilt requests, failures after a success, rewinds, concurrent jobs.

use std::sync::Arc;

use fanfold_core::Tokens;
use fanfold_engine::{
    JobOutcome, LoggedEvent, SessionEvent, SummaryModel, SummaryModels, SummaryTask, SummaryWriter,
};
use fanfold_provider::{ErrorClass, ModelAnswer, ModelPrompt, ProviderError as Failed};
use fanfold_testkit::fakes::summaries::good_summary;
use fanfold_testkit::fakes::upstream::Fault;

use super::fixture::{Fixture, WINDOW, body};
use crate::setup::{id, request, terms, terms_of};

const MARK: &str = "Summary of earlier steps, written by a model";

/// A model that answers by a function.
struct FunctionModel<F>(F);

impl<F: Fn(&ModelPrompt) -> Result<String, Failed> + Send + Sync> SummaryWriter for FunctionModel<F> {
    fn write(&self, prompt: &ModelPrompt) -> Result<ModelAnswer, Failed> {
        (self.0)(prompt).map(|text| ModelAnswer { text, ..ModelAnswer::default() })
    }
}

pub(super) fn models(
    model: impl Fn(&ModelPrompt) -> Result<String, Failed> + Send + Sync + 'static,
) -> SummaryModels {
    let way = SummaryModel {
        model: "function".to_owned(),
        server: "here".to_owned(),
        window: Tokens(4_000),
        writer: Arc::new(FunctionModel(model)),
    };
    SummaryModels { models: vec![way], abort_on_failure: false }
}

/// Checks that every request can be rebuilt, and that another process sends the same bytes.
fn check_replayed(fixture: &Fixture, sent: &[String]) {
    for (i, body) in sent.iter().enumerate() {
        let rebuilt = fixture.engine.rebuild(&id("s"), i + 1, &terms_of).unwrap();
        assert!(rebuilt.is_same && rebuilt.body == *body, "request {}", i + 1);
    }
    let with_cache = fixture.resend();
    let without_cache =
        request(&fixture.other_engine(), "s", &body(fixture.n_messages), &terms("fanfold", WINDOW)).body;
    assert_eq!(with_cache, without_cache);
}

#[test]
fn requests_are_rebuilt_byte_for_byte_between_summaries() {
    let mut fixture = Fixture::new();
    let first = fixture.resend();
    let mut sent = vec![first.clone(), first];
    let mut n_seen = 0;
    for (i, n) in (131..400).step_by(6).enumerate() {
        sent.push(fixture.send(n));
        let has_summary = fixture.view().contains(MARK);
        n_seen += usize::from(has_summary);
        if i % 4 == 1 {
            let outcome =
                if i % 8 == 1 { fixture.summarise_in_background() } else { fixture.summarise_by_hand() };
            assert!(matches!(outcome, JobOutcome::Written(_) | JobOutcome::NothingToDo), "{outcome}");
            if i % 8 != 1 {
                sent.push(fixture.resend());
            }
        }
    }
    assert!(n_seen > 10, "{n_seen}");
    check_replayed(&fixture, &sent);
    fixture.check_nothing_is_lost();
}

#[test]
fn a_retry_gets_the_same_bytes_after_a_summary() {
    let mut fixture = Fixture::new();
    for n in (140..400).step_by(13) {
        let first = fixture.send(n);
        fixture.summarise_in_background();
        assert_eq!(fixture.resend(), first, "after {n}");
        fixture.engine.clear_cache();
        assert_eq!(fixture.resend(), first, "after {n}, replayed");
    }
    assert!(fixture.events("summarised").len() > 2);
}

/// Another process sends requests while a summary is written.
#[test]
fn a_late_summary_changes_no_sent_request() {
    let fixture = Fixture::new();
    let other = fixture.other_engine();
    let sent = std::sync::Mutex::new(Vec::new());
    let engine = Arc::new(other);
    let other_process = Arc::clone(&engine);
    let bodies: &std::sync::Mutex<Vec<String>> = &sent;
    let task = SummaryTask { session: &id("s"), focus: "", is_by_hand: false };
    let mut n = fixture.n_messages;
    let models = models(|prompt| Ok(good_summary(&prompt.user)));
    let outcome = fixture.engine.summarise(&task, &models, &mut |_| {
        n += 60;
        bodies.lock().unwrap().push(request(&other_process, "s", &body(n), &terms("fanfold", WINDOW)).body);
    });
    assert!(matches!(outcome, Ok(JobOutcome::Written(_))), "{outcome:?}");
    let sent = sent.into_inner().unwrap();
    assert!(!sent.is_empty());
    let again = request(&engine, "s", &body(n), &terms("fanfold", WINDOW)).body;
    assert_eq!(again, sent[sent.len() - 1]);
    let replayed = request(&fixture.other_engine(), "s", &body(n), &terms("fanfold", WINDOW)).body;
    assert_eq!(replayed, again);
}

#[test]
fn a_failed_job_keeps_the_last_summary() {
    let mut fixture = Fixture::new();
    assert!(matches!(fixture.summarise_by_hand(), JobOutcome::Written(_)));
    fixture.resend();
    let after_mark = |view: &str| view.split(MARK).nth(1).map(str::to_owned);
    let first = after_mark(&fixture.view()).unwrap();
    assert!(!first.is_empty());
    fixture.clock.advance(3600);
    for n in [200, 250, 300] {
        fixture.send(n);
        fixture.fail_both_models(&Fault::Status(429));
        let outcome = fixture.summarise_in_background();
        assert!(matches!(&outcome, JobOutcome::Digest(_)), "{outcome}");
        fixture.clock.advance(3600);
        assert!(fixture.view().contains(MARK), "after {n}");
    }
    assert_eq!(fixture.events("summarised").len(), 1);
}

#[test]
fn the_next_summary_continues_the_last_one() {
    let mut fixture = Fixture::new();
    fixture.summarise_by_hand();
    fixture.send(260);
    let prompts = Arc::new(std::sync::Mutex::new(String::new()));
    let seen = Arc::clone(&prompts);
    let models = models(move |prompt| {
        seen.lock().unwrap().push_str(&prompt.user);
        Ok(good_summary(&prompt.user))
    });
    let outcome = fixture.summarise(&models, true);
    assert!(matches!(&outcome, JobOutcome::Written(_)), "{outcome}");
    let prompts = prompts.lock().unwrap();
    assert!(prompts.contains("To find out what goes wrong, and to mend it."), "the last summary");
    assert!(!prompts.contains("stage 2 line 3 takes"), "summarised steps are not sent again");
    let upto: Vec<u32> = fixture
        .events("summarised")
        .iter()
        .filter_map(|event| match LoggedEvent::decode(event)?.event {
            SessionEvent::Summarised(summary) => Some(summary.upto),
            _ => None,
        })
        .collect();
    assert!(upto.len() == 2 && upto[0] < upto[1], "{upto:?}");
}

#[test]
fn a_topic_by_hand_starts_a_new_summary_of_everything() {
    let fixture = Fixture::new();
    assert!(matches!(fixture.summarise_by_hand(), JobOutcome::Written(_)));
    let prompts = Arc::new(std::sync::Mutex::new(String::new()));
    let seen = Arc::clone(&prompts);
    let models = models(move |prompt| {
        seen.lock().unwrap().push_str(&prompt.user);
        Ok(good_summary(&prompt.user))
    });
    let summarise = |focus: &str, is_by_hand: bool| {
        let task = SummaryTask { session: &id("s"), focus, is_by_hand };
        fixture.engine.summarise(&task, &models, &mut |_| {}).unwrap()
    };
    // Without a topic nothing is left to summarise, and a background job never starts over.
    assert!(matches!(summarise("", true), JobOutcome::NothingToDo));
    assert!(matches!(summarise("stage 3", false), JobOutcome::NothingToDo));
    assert!(prompts.lock().unwrap().is_empty(), "no model is called");
    let outcome = summarise("stage 3", true);
    assert!(matches!(outcome, JobOutcome::Written(_)), "{outcome}");
    let prompts = prompts.lock().unwrap();
    assert!(prompts.contains("The user wants this kept above all: stage 3"), "{prompts}");
    assert!(prompts.contains("Step 0."), "it covers everything: {prompts}");
    assert_eq!(fixture.events("summarised").len(), 2);
}

#[test]
fn a_session_has_one_job_at_a_time() {
    let fixture = Fixture::new();
    let task = SummaryTask { session: &id("s"), focus: "", is_by_hand: false };
    let other = fixture.other_engine();
    request(&other, "s", &body(fixture.n_messages), &terms("fanfold", WINDOW));
    let careful_ways = models(|prompt| Ok(good_summary(&prompt.user)));
    let mut second = None;
    let first = fixture.engine.summarise(&task, &careful_ways, &mut |_| {
        second.get_or_insert_with(|| other.summarise(&task, &careful_ways, &mut |_| {}).unwrap());
    });
    assert!(matches!(first, Ok(JobOutcome::Written(_))), "{first:?}");
    assert!(matches!(&second, Some(JobOutcome::Busy(_))), "{second:?}");
    // The lock is released, so another job can start. It has nothing to summarise.
    let outcome = fixture.summarise_in_background();
    assert!(matches!(outcome, JobOutcome::NothingToDo), "{outcome}");
}

#[test]
fn the_lock_of_a_dead_process_is_taken_over() {
    let fixture = Fixture::new();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    // No process has this id: it is above the maximum of Linux.
    let dead = format!("{}-{}-0a1b2c3d", host.trim(), u32::MAX);
    let key = id("errand of s");
    let now = fanfold_engine::Clock::now(&*fixture.clock);
    fixture.engine.store().lock(&key, &dead, 600_000, now).unwrap();
    let outcome = fixture.summarise_in_background();
    let is_linux = std::path::Path::new("/proc/self").exists();
    assert_eq!(matches!(outcome, JobOutcome::Written(_)), is_linux, "{outcome}");
}

#[test]
fn a_summary_of_rewound_messages_is_discarded() {
    let fixture = Fixture::new();
    let task = SummaryTask { session: &id("s"), focus: "", is_by_hand: false };
    let models = models(|prompt| Ok(good_summary(&prompt.user)));
    let other = fixture.other_engine();
    let mut edited = crate::setup::long_chat(200);
    edited.truncate(fixture.n_messages);
    edited[1]["content"] = "Something else altogether.".into();
    let edited = crate::setup::chat(&edited);
    let outcome = fixture.engine.summarise(&task, &models, &mut |_| {
        request(&other, "s", &edited, &terms("fanfold", WINDOW));
    });
    assert!(matches!(outcome, Ok(JobOutcome::Overtaken)), "{outcome:?}");
    assert!(fixture.events("summarised").is_empty());
}

#[test]
fn the_error_of_a_custom_writer_is_reported() {
    let fixture = Fixture::new();
    let outcome =
        fixture.summarise(&models(|_| Err(Failed::new(ErrorClass::Server, "it is on fire"))), false);
    assert!(outcome.to_string().contains("it is on fire"), "{outcome}");
}
