//! A session that is folded, and two models over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fanfold_core::{Extent, Tokens, print_view};
use fanfold_engine::{Clock, Ended, Engine, Wanted, Way, Ways};
use fanfold_provider::{Client, Endpoint, KeySource, Style, Timeouts};
use fanfold_store::{EventRow, Millis, SqliteStore};
use fanfold_testkit::fakes::summaries::good_summary;
use fanfold_testkit::fakes::upstream::{Fault, Script, ScriptInput, ScriptedReply, Upstream};
use serde_json::Value;
use tempfile::TempDir;

use crate::setting::{chat, id, long_chat, request, terms};

/// The window of the conversations here, in words.
pub(crate) const WINDOW: u64 = 3_000;
/// How long a model may take here.
const PATIENCE: Duration = Duration::from_millis(400);

/// A clock that stands still until it is told to go on.
#[derive(Default)]
pub(crate) struct Still(AtomicI64);

impl Still {
    pub(crate) fn go_on(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

impl Clock for Still {
    fn now(&self) -> Millis {
        Millis(1_794_751_764_000 + self.0.load(Ordering::SeqCst))
    }

    fn wait(&self, ms: u64) {
        self.0.fetch_add(ms as i64, Ordering::SeqCst);
    }
}

/// What a model was asked, whatever the API.
pub(crate) fn shown(asked: &ScriptInput<'_>) -> String {
    let texts = asked.body["messages"].as_array().into_iter().flatten();
    texts.map(|message| words_of(&message["content"])).collect::<Vec<_>>().join("\n")
}

fn words_of(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().into_iter().chain(parts).collect()
}

/// A model that says what a function makes of what it is shown.
pub(crate) fn model(says: impl Fn(&str) -> String + Send + Sync + 'static) -> Upstream {
    let script =
        Script::new(move |asked| ScriptedReply { text: says(&shown(asked)), ..ScriptedReply::default() });
    Upstream::start(Script { is_strict: false, ..script }).unwrap()
}

/// A session that was folded, and two models.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) clock: Arc<Still>,
    pub(crate) engine: Engine,
    pub(crate) summary: Upstream,
    pub(crate) main: Upstream,
    pub(crate) n_messages: usize,
}

impl Stage {
    /// Both models are careful.
    pub(crate) fn new() -> Stage {
        Stage::with(good_summary)
    }

    /// The summary model says what a function makes of what it is shown; the main model is careful.
    pub(crate) fn with(says: impl Fn(&str) -> String + Send + Sync + 'static) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Still::default());
        let store = SqliteStore::open(&folder.path().join("s.db")).unwrap();
        let engine = Engine::new(Arc::new(store), Arc::clone(&clock) as Arc<dyn Clock>);
        let mut stage =
            Stage { folder, clock, engine, summary: model(says), main: model(good_summary), n_messages: 0 };
        stage.goes_on(130);
        stage
    }

    /// Another engine on the same store, as another process would have it.
    pub(crate) fn other_engine(&self) -> Engine {
        let store = SqliteStore::open(&self.folder.path().join("s.db")).unwrap();
        Engine::new(Arc::new(store), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// The conversation goes on to so many messages. Gives the body that leaves.
    pub(crate) fn goes_on(&mut self, n_messages: usize) -> String {
        self.n_messages = n_messages;
        self.again()
    }

    /// The same body is sent again.
    pub(crate) fn again(&self) -> String {
        request(&self.engine, "s", &body(self.n_messages), &terms("fanfold", WINDOW)).body
    }

    /// The models, the main model last.
    pub(crate) fn ways(&self) -> Ways {
        let ways = vec![way(&self.summary, "little"), way(&self.main, "large")];
        Ways { ways, aborts: false }
    }

    /// Has a summary written in the background.
    pub(crate) fn by_itself(&self) -> Ended {
        self.ask(&self.ways(), false)
    }

    /// Has one written by hand.
    pub(crate) fn by_hand(&self) -> Ended {
        self.ask(&self.ways(), true)
    }

    pub(crate) fn ask(&self, ways: &Ways, is_by_hand: bool) -> Ended {
        let wanted = Wanted { session: &id("s"), focus: "", is_by_hand };
        self.engine.summarise(&wanted, ways, &mut |_| {}).unwrap()
    }

    pub(crate) fn fault(&self, fault: Fault) {
        self.summary.fault(fault);
    }

    /// Both models meet a fault.
    pub(crate) fn faults(&self, fault: &Fault) {
        self.summary.fault(fault.clone());
        self.main.fault(fault.clone());
    }

    pub(crate) fn events(&self, kind: &str) -> Vec<EventRow> {
        let all = self.engine.store().events(&id("s"), 0).unwrap();
        all.into_iter().filter(|event| event.kind == kind).collect()
    }

    /// The view as a person reads it.
    pub(crate) fn view(&self) -> String {
        let look = |followed: &mut fanfold_engine::Followed| {
            let view = followed.view().unwrap();
            assert!(view.tokens <= Tokens(WINDOW), "{} tokens", view.tokens);
            print_view(followed.session.transcript(), &view)
        };
        self.engine.look(&id("s"), look).unwrap()
    }

    /// Whether every message is there and every handle of the view opens, from the store alone.
    pub(crate) fn check_nothing_is_lost(&self) {
        let row = self.engine.row(&id("s")).unwrap();
        let kept = self.engine.store().chain(row.tip.unwrap(), 0..u32::MAX).unwrap();
        assert_eq!(kept.len(), self.n_messages);
        let handles = self.engine.look(&id("s"), |followed| followed.view().unwrap().handles).unwrap();
        assert!(!handles.is_empty());
        for handle in handles {
            let other = self.engine.recall(&id("s"), handle, &Extent::Whole).unwrap();
            let ours = self.engine.look(&id("s"), |followed| followed.session.recall(handle, &Extent::Whole));
            assert_eq!(Some(other), ours.unwrap().ok());
        }
        assert!(self.engine.store().check(fanfold_store::CheckMode::Report).unwrap().is_empty());
    }
}

/// A conversation of so many messages.
pub(crate) fn body(n_messages: usize) -> String {
    chat(&long_chat(200)[..n_messages])
}

/// A model at a provider, with a key that is made up.
pub(crate) fn way(upstream: &Upstream, model: &str) -> Way {
    way_at(&format!("{}/v1", upstream.url()), model, KeySource::Command(format!("echo not-a-key-{model}")))
}

pub(crate) fn way_at(url: &str, model: &str, key: KeySource) -> Way {
    let timeouts = Timeouts { connect: PATIENCE, first: PATIENCE, idle: PATIENCE, ..Timeouts::default() };
    let endpoint =
        Endpoint { timeouts, n_retries: 0, ..Endpoint::new(Style::OpenAi, url, model).with_key(key) };
    let client = Client::new(endpoint).unwrap();
    Way { model: model.to_owned(), place: url.to_owned(), window: Tokens(4_000), writer: Arc::new(client) }
}
