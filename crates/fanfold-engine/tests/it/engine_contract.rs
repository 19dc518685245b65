//! The contract of engines: the built-in engine and the example engine pass one suite and run in one host.

use fanfold_core::{Budget, Engine, EngineFactory, Policy, Session, Tokens, Words};
use fanfold_engine::{FoldOptions, FoldedConversation, Terms, decode};
use fanfold_testkit::contracts::engine::check;
use fanfold_testkit::contracts::message_list;

use crate::setup::{chat, long_chat, terms};
use newest::{NEWEST, Newest};

#[path = "../../examples/other_engine/newest.rs"]
#[allow(dead_code, reason = "the example uses all of it")]
pub(crate) mod newest;

fn seeds() -> std::ops::Range<u64> {
    if std::env::var_os("FANFOLD_MANY").is_some() { 0..2_000 } else { 0..60 }
}

#[test]
fn the_built_in_engine_keeps_the_contract() {
    for policy in ["fanfold", "hermes", "mask", "window"] {
        let make = |budget| Session::new(Policy::named(policy).unwrap(), budget, &Words);
        assert_eq!(check(seeds(), make), Ok(()), "{policy}");
    }
}

#[test]
fn the_example_engine_keeps_the_contract() {
    assert_eq!(check(seeds(), |budget| Newest::new(budget, &Words)), Ok(()));
}

/// An engine that resets at the end of a session, which some hosts report at each fold.
struct Forgetful(Newest);

macro_rules! delegate {
    ($($name:ident($($arg:ident: $type:ty),*) -> $out:ty);* $(;)?) => {$(
        fn $name(&mut self $(, $arg: $type)*) -> $out { self.0.$name($($arg),*) }
    )*};
}

impl Engine for Forgetful {
    delegate! {
        append(entry: fanfold_core::Entry) -> fanfold_core::EntryId;
        set_result(call: fanfold_core::CallId, outcome: fanfold_core::Outcome) -> bool;
        set_tools(schemas: Tokens) -> ();
        view() -> Result<&fanfold_core::View, fanfold_core::ViewError>;
        fold(request: &fanfold_core::FoldRequest) -> Result<fanfold_core::Feedback, fanfold_core::ViewError>;
        set_budget(budget: Budget) -> ();
    }

    fn name(&self) -> &str {
        "forgetful"
    }

    fn budget(&self) -> Budget {
        self.0.budget()
    }

    fn ledger(&self) -> &fanfold_core::Ledger {
        self.0.ledger()
    }

    fn fork(&self) -> Box<dyn Engine> {
        Box::new(Forgetful(self.0.clone()))
    }

    fn transcript(&self) -> &fanfold_core::Transcript {
        self.0.transcript()
    }

    fn counter(&self) -> &dyn fanfold_core::Count {
        self.0.counter()
    }

    fn should_fold(&self, tokens: Option<Tokens>) -> fanfold_core::FoldAdvice {
        self.0.should_fold(tokens)
    }

    fn status(&self) -> fanfold_core::EngineStatus {
        self.0.status()
    }

    fn change_session(&mut self, _: &fanfold_core::SessionTransition) {
        self.0.change_session(&fanfold_core::SessionTransition::Reset);
    }
}

#[test]
fn an_engine_that_resets_at_a_session_end_breaks_the_contract() {
    let broken = check(seeds(), |budget| Forgetful(Newest::new(budget, &Words))).unwrap_err();
    assert!(broken.message.contains("entries are left"), "{}", broken.message);
}

#[test]
fn the_terms_select_the_engine() {
    let body = chat(&long_chat(40));
    let (conversation, changes) = decode(&body, None).unwrap();
    let wishes = FoldOptions { record_sizes: true, ..FoldOptions::default() };
    let terms = Terms { engine: NEWEST, ..terms("fanfold", 900) };
    let mut followed = FoldedConversation::from_body(conversation, changes, &terms, &wishes);
    let view = followed.view().unwrap();
    let folded = followed.encode(&view);
    assert_eq!(followed.session.name(), "newest");
    assert!(view.tokens <= Tokens(900) && folded.len() * 3 < body.len(), "{}", view.tokens);
    assert_eq!(message_list::check(fanfold_testkit::generators::bodies::BodyFormat::Chat, &folded), Ok(()));
    assert!(folded.contains("earlier entries are left out") && folded.contains("stage 39 line 11"));
    let course = followed.size_history.unwrap();
    assert_eq!(course.len(), followed.session.transcript().len());
    assert!(course.iter().all(|sizes| sizes.view <= Tokens(900)) && course.last().unwrap().n_folds > 1);
}

#[test]
fn the_selected_engine_serves_replays_and_rebuilds_requests() {
    let engine = crate::setup::engine();
    let id = fanfold_store::SessionId("s".to_owned());
    let terms = Terms { engine: NEWEST, described: "newest".to_owned(), ..terms("fanfold", 900) };
    let mut bodies = Vec::new();
    for n_turns in [10, 38, 40] {
        let body = chat(&long_chat(n_turns));
        let answer = engine.request(&fanfold_engine::RequestInput::new(&id, &body, &terms, "test"));
        assert!(answer.is_stored && answer.sizes.unwrap().view <= Tokens(900), "{:?}", answer.fold);
        bodies.push(answer.body);
        // The next request is replayed from the store.
        engine.clear_cache();
    }
    assert!(bodies[2].contains("earlier entries are left out"));
    let terms_of = |described: &str, budget: Budget| {
        assert_eq!(described, "newest");
        Ok(Terms { budget, ..terms.clone() })
    };
    for (i, body) in bodies.iter().enumerate() {
        let rebuilt = engine.rebuild(&id, i + 1, &terms_of).unwrap();
        assert_eq!((&rebuilt.body, rebuilt.is_same), (body, true));
    }
}

#[test]
fn an_unknown_engine_is_an_error_that_names_the_known_ones() {
    let known = [EngineFactory::FANFOLD, NEWEST];
    assert_eq!(EngineFactory::find(&known, "newest").unwrap().name, "newest");
    let error = EngineFactory::find(&known, "newer").unwrap_err();
    assert_eq!(error.to_string(), "there is no engine `newer`");
    assert_eq!(error.known, ["fanfold", "newest"]);
}
