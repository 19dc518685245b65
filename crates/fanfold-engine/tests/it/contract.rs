//! The contract of engines: ours and another one pass one suite, and one host runs both.

use fanfold_core::{Budget, Engine, Policy, Session, Tokens, Words};
use fanfold_engine::{Followed, Wishes, decode};
use fanfold_testkit::engines::check;
use fanfold_testkit::valid;

use crate::setting::{chat, long_chat, terms};
use newest::Newest;

#[path = "../../examples/other_engine/newest.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
mod newest;

fn seeds() -> std::ops::Range<u64> {
    if std::env::var_os("FANFOLD_MANY").is_some() { 0..2_000 } else { 0..60 }
}

#[test]
fn ours_keeps_it() {
    for policy in ["fanfold", "hermes", "mask", "window"] {
        let make = |budget| Session::new(Policy::named(policy).unwrap(), budget, &Words);
        assert_eq!(check(seeds(), make), Ok(()), "{policy}");
    }
}

#[test]
fn another_one_keeps_it() {
    assert_eq!(check(seeds(), |budget| Newest::new(budget, &Words)), Ok(()));
}

/// An engine that forgets at an end of a session, as hosts that tell one at each fold would have it.
struct Forgetful(Newest);

macro_rules! passed_on {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty);* $(;)?) => {$(
        fn $name(&mut self $(, $arg: $type)*) -> $out { self.0.$name($($arg),*) }
    )*};
}

impl Engine for Forgetful {
    passed_on! {
        append(entry: fanfold_core::Entry) -> fanfold_core::EntryId;
        answer(call: fanfold_core::CallId, outcome: fanfold_core::Outcome) -> bool;
        set_tools(schemas: Tokens) -> ();
        view() -> Result<&fanfold_core::View, fanfold_core::Refusal>;
        fold(ask: &fanfold_core::Ask) -> Result<fanfold_core::Feedback, fanfold_core::Refusal>;
        on_model(budget: Budget) -> ();
    }

    fn name(&self) -> &str {
        "forgetful"
    }

    fn transcript(&self) -> &fanfold_core::Transcript {
        self.0.transcript()
    }

    fn counter(&self) -> &dyn fanfold_core::Count {
        self.0.counter()
    }

    fn should_fold(&self, tokens: Option<Tokens>) -> fanfold_core::Should {
        self.0.should_fold(tokens)
    }

    fn status(&self) -> fanfold_core::Status {
        self.0.status()
    }

    fn on_session(&mut self, _: &fanfold_core::SessionChange) {
        self.0.on_session(&fanfold_core::SessionChange::Reset);
    }
}

#[test]
fn one_that_forgets_at_an_end_does_not() {
    let broken = check(seeds(), |budget| Forgetful(Newest::new(budget, &Words))).unwrap_err();
    assert!(broken.what.contains("entries are left"), "{}", broken.what);
}

/// The host that reads, counts and writes bodies does not know which engine it has.
#[test]
fn one_host_runs_both() {
    let body = chat(&long_chat(40));
    let (conversation, changes) = decode(&body, None).unwrap();
    let budget = Budget::with_reserve(Tokens(900), Tokens::ZERO);
    let wishes = Wishes { has_course: true, ..Wishes::default() };
    let engine = Newest::new(budget, &Words);
    let mut other = Followed::body_by(engine, conversation.clone(), changes.clone(), &wishes);
    let view = other.plain_view().unwrap().clone();
    let folded = other.encode(&view);
    assert!(view.tokens <= Tokens(900) && folded.len() * 3 < body.len(), "{}", view.tokens);
    assert_eq!(valid::check(fanfold_testkit::bodies::Kind::Chat, &folded), Ok(()));
    assert!(folded.contains("earlier entries are left out") && folded.contains("stage 39 line 11"));
    let course = other.course.unwrap();
    assert_eq!(course.len(), other.session.transcript().len());
    assert!(course.iter().all(|sizes| sizes.view <= Tokens(900)) && course.last().unwrap().n_folds > 1);
    let session = Session::new(Policy::fanfold(), budget, &Words);
    let mut ours = Followed::body_by(session, conversation.clone(), changes.clone(), &wishes);
    let ours = ours.plain_view().unwrap().clone();
    let usual = Followed::body(conversation, changes, &terms("fanfold", 900), &wishes).view().unwrap();
    assert_eq!(ours, usual, "ours is one of them");
}
