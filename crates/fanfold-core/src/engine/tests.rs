//! Our own engine, used as a host uses any.

use super::*;
use crate::fold::policy::Policy;
use crate::model::tokens::{Frame, Words};
use crate::notation::parse;
use crate::output::feedback::Ended;

const LONG: &str = "some words of a result that is long enough to be worth folding ";

fn session(n: usize) -> Session<'static> {
    let budget = Budget::with_reserve(Tokens(120), Tokens::ZERO);
    let mut session = Session::new(Policy::fanfold(), budget, &Words);
    for i in 0..n {
        let words = LONG.repeat(2);
        say(
            &mut session,
            &format!("user    ask {i}\ncall    read file_{i}.rs\nresult  {words}{i}\nsay     done {i}"),
        );
    }
    session
}

fn say(engine: &mut dyn Engine, text: &str) {
    for entry in parse(text).expect("the notation is right") {
        engine.append(entry);
    }
}

#[test]
fn a_host_can_use_it_without_knowing_it() {
    let mut engine = session(3);
    let engine: &mut dyn Engine = &mut engine;
    assert!(!engine.should_fold(None).is_due);
    assert!(engine.has_something_to_fold());
    let feedback = engine.fold(&FoldRequest { force: true, ..FoldRequest::default() }).expect("it fits");
    assert_eq!((feedback.ended, engine.status().n_folds), (Ended::Folded, 1));
    let again = engine.fold(&FoldRequest { force: true, ..FoldRequest::default() }).expect("it fits");
    assert_eq!(again.ended, Ended::Nothing);
    assert!(again.note.expect("it says why").contains("within the low mark"), "{}", again.headline);
    engine.set_budget(Budget::with_reserve(Tokens(30), Tokens::ZERO));
    assert!(engine.status().tokens <= Tokens(30) || engine.preflight().is_err());
    engine.change_session(&SessionChange::Reset);
    assert_eq!(engine.status().tokens, Tokens::ZERO);
}

#[test]
fn the_model_can_open_a_fold() {
    let mut session = session(6);
    let handle = session.view().expect("it fits").handles[0].to_string();
    let answer = session.call_tool("recall", &format!(r#"{{"handle":"{handle}","search":"worth"}}"#));
    assert!(answer.expect("its own tool").contains("worth folding"));
    assert!(session.call_tool("other", "{}").is_none());
    assert!(session.call_tool("recall", "null").expect("its own tool").starts_with("error: "));
}

/// Words that are only estimated.
struct Guess;

impl Count for Guess {
    fn count(&self, text: &str) -> Tokens {
        Words.count(text)
    }

    fn frame(&self) -> Frame {
        Words.frame()
    }

    fn name(&self) -> &str {
        "guess"
    }

    fn is_exact(&self) -> bool {
        false
    }
}

/// A session of a thousand tokens that folds from 600 on, with 500 in it that were sent.
fn estimated(counter: &'static dyn Count) -> Session<'static> {
    let policy = Policy { strategy: crate::model::budget::Strategy::Aggressive, ..Policy::fanfold() };
    let mut session = Session::new(policy, Budget::with_reserve(Tokens(1000), Tokens::ZERO), counter);
    say(&mut session, "user    read them all");
    for i in 0..20 {
        say(&mut session, &format!("call    read file_{i}.rs\nresult  {}{i}", LONG.repeat(2)));
    }
    session.view().expect("it fits");
    assert!(session.ledger().receipts().is_empty() && session.status().tokens > Tokens(500));
    session
}

#[test]
fn what_the_provider_proved_to_fit_is_not_folded_for_an_estimate() {
    let grow = |session: &mut Session<'static>| {
        let mut sizes = Vec::new();
        for i in 20..40 {
            say(session, &format!("call    read file_{i}.rs\nresult  {}{i}", LONG.repeat(2)));
            session.view().expect("it fits");
            if !session.ledger().receipts().is_empty() {
                return sizes.len();
            }
            sizes.push(session.status().tokens);
        }
        sizes.len()
    };
    let without = grow(&mut estimated(&Guess));
    let mut told = estimated(&Guess);
    let counted = told.status().tokens;
    told.report_usage(ProviderUsage { input: Tokens(counted.0 / 2), ..ProviderUsage::default() });
    let should = told.should_fold(Some(Tokens(601)));
    assert!(should.is_due, "what the host knows counts: {}", should.reason);
    let mut replayed = told.fork();
    let with = grow(&mut told);
    // It waits for as much as the estimate was wrong by, and no longer.
    assert!(with > without + 5, "{without} {with}");
    assert_eq!(grow(&mut replayed), with);
    // A count that is the provider's own is not doubted, and a report of nothing says nothing.
    let mut exact = estimated(&Words);
    exact.report_usage(ProviderUsage { input: Tokens(100), ..ProviderUsage::default() });
    assert_eq!(grow(&mut exact), without);
    let mut silent = estimated(&Guess);
    silent.report_usage(ProviderUsage::default());
    assert_eq!(grow(&mut silent), without);
}

#[test]
fn the_reason_tells_that_the_estimate_waits() {
    let mut session = estimated(&Guess);
    let counted = session.status().tokens;
    session.report_usage(ProviderUsage { input: Tokens(counted.0 / 2), ..ProviderUsage::default() });
    say(&mut session, &format!("call    read more.rs\nresult  {}", LONG.repeat(9)));
    let should = session.should_fold(None);
    assert!(session.status().tokens > Tokens(600) && !should.is_due, "{}", should.reason);
    assert!(should.reason.contains("the provider counted less"), "{}", should.reason);
    assert_eq!(session.fold(&FoldRequest::default()).expect("it fits").ended, Ended::Nothing);
    // Whatever was reported, what is over the room by our own count is folded.
    say(&mut session, &format!("call    read most.rs\nresult  {}", LONG.repeat(40)));
    session.view().expect("it fits");
    assert!(!session.ledger().receipts().is_empty());
}

#[test]
fn what_the_host_knows_to_cost_more_is_folded_at_once() {
    let mut session = estimated(&Words);
    let feedback =
        session.fold(&FoldRequest { tokens: Some(Tokens(900)), ..FoldRequest::default() }).expect("it fits");
    assert_eq!(feedback.ended, Ended::Folded, "{feedback}");
}

/// A host that can't be pleased: whatever is folded, it reports the same, and tells an end of the session each time.
#[test]
fn folds_that_win_nothing_come_to_rest_whatever_a_host_tells() {
    let mut session = Session::new(
        Policy { strategy: crate::model::budget::Strategy::Aggressive, ..Policy::fanfold() },
        Budget::with_reserve(Tokens(1000), Tokens::ZERO),
        &Guess,
    );
    say(&mut session, &format!("system  {}\nuser    go on", LONG.repeat(52)));
    let mut n_folds = 0;
    for i in 0..30 {
        say(&mut session, &format!("call    look {i}\nresult  nothing {i}"));
        if session.view().is_err() {
            break;
        }
        session.report_usage(ProviderUsage { input: Tokens(990), ..ProviderUsage::default() });
        let folded = session.fold(&FoldRequest { tokens: Some(Tokens(990)), ..FoldRequest::default() });
        n_folds += usize::from(folded.is_ok_and(|feedback| feedback.ended == Ended::Folded));
        session.change_session(&SessionChange::End("s".to_owned()));
        session.change_session(&SessionChange::Start("s".to_owned()));
    }
    assert!(
        n_folds + session.ledger().receipts().len() <= 6,
        "{n_folds} {}",
        session.ledger().receipts().len()
    );
    assert!(!session.should_fold(Some(Tokens(990))).is_due);
}
