//! Tests of `Session` through the `Engine` trait.

use super::*;
use crate::fold::policy::Policy;
use crate::model::tokens::{FrameCosts, Words};
use crate::notation::parse;
use crate::output::feedback::FoldStatus;

const LONG: &str = "some words of a result that is long enough to be worth folding ";

fn session(n: usize) -> Session<'static> {
    let budget = Budget::with_reserve(Tokens(120), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for i in 0..n {
        let words = LONG.repeat(2);
        append(
            &mut session,
            &format!("user    ask {i}\ncall    read file_{i}.rs\nresult  {words}{i}\nsay     done {i}"),
        );
    }
    session
}

fn append(engine: &mut dyn Engine, text: &str) {
    for entry in parse(text).expect("the notation is right") {
        engine.append(entry);
    }
}

#[test]
fn engine_trait_covers_a_session() {
    let mut engine = session(3);
    let engine: &mut dyn Engine = &mut engine;
    assert!(!engine.should_fold(None).is_due);
    assert!(engine.has_something_to_fold());
    let feedback = engine.fold(&FoldRequest { force: true, ..FoldRequest::default() }).expect("it fits");
    assert_eq!((feedback.status, engine.status().n_folds), (FoldStatus::Folded, 1));
    let again = engine.fold(&FoldRequest { force: true, ..FoldRequest::default() }).expect("it fits");
    assert_eq!(again.status, FoldStatus::Nothing);
    assert!(again.note.expect("a reason").contains("within the low mark"), "{}", again.headline);
    engine.set_budget(Budget::with_reserve(Tokens(30), Tokens::ZERO));
    assert!(engine.status().tokens <= Tokens(30) || engine.preflight().is_err());
    engine.change_session(&SessionTransition::Reset);
    assert_eq!(engine.status().tokens, Tokens::ZERO);
}

#[test]
fn recall_tool_returns_originals() {
    let mut session = session(6);
    let handle = session.view().expect("it fits").handles[0].to_string();
    let answer = session.call_tool("recall", &format!(r#"{{"handle":"{handle}","search":"worth"}}"#));
    assert!(answer.expect("a known tool").contains("worth folding"));
    let mut call = |arguments: &str| session.call_tool("recall", arguments).expect("a known tool");
    let found = call(r#"{"search":"WORTH folding"}"#);
    assert!(found.starts_with("#1.1 1: some words of a result"), "{found}");
    assert_eq!(call(r#"{"search":"nowhere"}"#), "no folded line contains `nowhere`");
    let unknown = call(r##"{"handle":"#9999"}"##);
    assert_eq!(unknown, "error: there is no #9999: the conversation has 12 steps");
    assert!(session.call_tool("other", "{}").is_none());
    assert!(session.call_tool("recall", "null").expect("a known tool").starts_with("error: "));
}

/// Counts words, but reports the counts as estimates.
struct EstimatedWords;

impl Count for EstimatedWords {
    fn count(&self, text: &str) -> Tokens {
        Words.count(text)
    }

    fn frame(&self) -> FrameCosts {
        Words.frame()
    }

    fn name(&self) -> &str {
        "estimated words"
    }

    fn is_exact(&self) -> bool {
        false
    }
}

/// A session that folds above 600 of 1,000 tokens, with a sent view of more than 500.
fn session_with_counter(counter: &'static dyn Count) -> Session<'static> {
    let policy = Policy::fanfold().with_strategy(crate::model::budget::Strategy::Aggressive);
    let mut session = Session::new(policy, Budget::with_reserve(Tokens(1000), Tokens::ZERO), counter);
    append(&mut session, "user    read them all");
    for i in 0..20 {
        append(&mut session, &format!("call    read file_{i}.rs\nresult  {}{i}", LONG.repeat(2)));
    }
    session.view().expect("it fits");
    assert!(session.ledger().receipts().is_empty() && session.status().tokens > Tokens(500));
    session
}

#[test]
fn reported_usage_postpones_folds_of_overestimated_views() {
    let grow = |session: &mut Session<'static>| {
        let mut sizes = Vec::new();
        for i in 20..40 {
            append(session, &format!("call    read file_{i}.rs\nresult  {}{i}", LONG.repeat(2)));
            session.view().expect("it fits");
            if !session.ledger().receipts().is_empty() {
                return sizes.len();
            }
            sizes.push(session.status().tokens);
        }
        sizes.len()
    };
    let n_without_report = grow(&mut session_with_counter(&EstimatedWords));
    let mut reported = session_with_counter(&EstimatedWords);
    let counted = reported.status().tokens;
    reported.report_usage(ProviderUsage { input: Tokens(counted.0 / 2), ..ProviderUsage::default() });
    let advice = reported.should_fold(Some(Tokens(601)));
    assert!(advice.is_due, "a size given by the host takes precedence: {}", advice.reason);
    let mut fork = reported.fork();
    let n_with_report = grow(&mut reported);
    assert!(n_with_report > n_without_report + 5, "{n_without_report} {n_with_report}");
    assert_eq!(grow(&mut fork), n_with_report);
    // A report does not correct an exact counter, and an empty report is ignored.
    let mut exact = session_with_counter(&Words);
    exact.report_usage(ProviderUsage { input: Tokens(100), ..ProviderUsage::default() });
    assert_eq!(grow(&mut exact), n_without_report);
    let mut unreported = session_with_counter(&EstimatedWords);
    unreported.report_usage(ProviderUsage::default());
    assert_eq!(grow(&mut unreported), n_without_report);
}

#[test]
fn advice_mentions_the_lower_count_of_the_provider() {
    let mut session = session_with_counter(&EstimatedWords);
    let counted = session.status().tokens;
    session.report_usage(ProviderUsage { input: Tokens(counted.0 / 2), ..ProviderUsage::default() });
    append(&mut session, &format!("call    read more.rs\nresult  {}", LONG.repeat(9)));
    let advice = session.should_fold(None);
    assert!(session.status().tokens > Tokens(600) && !advice.is_due, "{}", advice.reason);
    assert!(advice.reason.contains("the provider counted less"), "{}", advice.reason);
    assert_eq!(session.fold(&FoldRequest::default()).expect("it fits").status, FoldStatus::Nothing);
    // A view that exceeds the room by our own count is folded regardless of the report.
    append(&mut session, &format!("call    read most.rs\nresult  {}", LONG.repeat(40)));
    session.view().expect("it fits");
    assert!(!session.ledger().receipts().is_empty());
}

#[test]
fn larger_size_from_the_host_triggers_a_fold() {
    let mut session = session_with_counter(&Words);
    let feedback =
        session.fold(&FoldRequest { tokens: Some(Tokens(900)), ..FoldRequest::default() }).expect("it fits");
    assert_eq!(feedback.status, FoldStatus::Folded, "{feedback}");
}

/// The host reports the same high usage after each fold, and an end of the session each time.
#[test]
fn ineffective_folds_rest_despite_host_reports() {
    let mut session = Session::new(
        Policy::fanfold().with_strategy(crate::model::budget::Strategy::Aggressive),
        Budget::with_reserve(Tokens(1000), Tokens::ZERO),
        &EstimatedWords,
    );
    append(&mut session, &format!("system  {}\nuser    go on", LONG.repeat(52)));
    let mut n_folds = 0;
    for i in 0..30 {
        append(&mut session, &format!("call    look {i}\nresult  nothing {i}"));
        if session.view().is_err() {
            break;
        }
        session.report_usage(ProviderUsage { input: Tokens(990), ..ProviderUsage::default() });
        let folded = session.fold(&FoldRequest { tokens: Some(Tokens(990)), ..FoldRequest::default() });
        n_folds += usize::from(folded.is_ok_and(|feedback| feedback.status == FoldStatus::Folded));
        session.change_session(&SessionTransition::End("s".to_owned()));
        session.change_session(&SessionTransition::Start("s".to_owned()));
    }
    assert!(
        n_folds + session.ledger().receipts().len() <= 6,
        "{n_folds} {}",
        session.ledger().receipts().len()
    );
    assert!(!session.should_fold(Some(Tokens(990))).is_due);
}
