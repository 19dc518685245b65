//! A folded session, and two models over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use fanfold_core::{Extent, Tokens, print_view};
use fanfold_engine::{Clock, JobOutcome, SessionEngine, SummaryModel, SummaryModels, SummaryTask};
use fanfold_provider::{Endpoint, KeySource, ModelClient, Timeouts};
use fanfold_store::{EventRow, Millis, SqliteStore};
use fanfold_testkit::fakes::summaries::good_summary;
use fanfold_testkit::fakes::upstream::{Fault, Script, ScriptInput, ScriptedReply, Upstream};
use fanfold_wire::Provider;
use serde_json::Value;
use tempfile::TempDir;

use crate::setup::{chat, id, long_chat, request, terms};

/// The window of the conversations here, in words.
pub(crate) const WINDOW: u64 = 3_000;
/// The timeout of the models.
const TIMEOUT: Duration = Duration::from_millis(400);

/// A clock that advances only by `advance` and by waits.
#[derive(Default)]
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1000, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(1_794_751_764_000 + self.0.load(Ordering::SeqCst))
    }

    fn wait(&self, ms: u64) {
        self.0.fetch_add(ms as i64, Ordering::SeqCst);
    }
}

/// The text of a prompt that a model received, in any API.
fn prompt_text(asked: &ScriptInput<'_>) -> String {
    let texts = asked.body["messages"].as_array().into_iter().flatten();
    texts.map(|message| content_text(&message["content"])).collect::<Vec<_>>().join("\n")
}

fn content_text(content: &Value) -> String {
    let parts = content.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str());
    content.as_str().into_iter().chain(parts).collect()
}

/// A model that answers each prompt by a function.
fn model(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Upstream {
    let script = Script::new(move |asked| ScriptedReply {
        text: answer(&prompt_text(asked)),
        ..ScriptedReply::default()
    });
    Upstream::start(Script { is_strict: false, ..script }).unwrap()
}

/// A folded session and two models.
pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: SessionEngine,
    pub(crate) summary: Upstream,
    pub(crate) main: Upstream,
    pub(crate) n_messages: usize,
}

impl Fixture {
    /// A fixture whose models both write valid summaries.
    pub(crate) fn new() -> Fixture {
        Fixture::with(good_summary)
    }

    /// A fixture whose summary model answers by a function. The main model writes valid summaries.
    pub(crate) fn with(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let store = SqliteStore::open(&folder.path().join("s.db")).unwrap();
        let engine = SessionEngine::new(Arc::new(store), Arc::clone(&clock) as Arc<dyn Clock>);
        let mut fixture = Fixture {
            folder,
            clock,
            engine,
            summary: model(answer),
            main: model(good_summary),
            n_messages: 0,
        };
        fixture.send(130);
        fixture
    }

    /// Another engine on the same store, like that of another process.
    pub(crate) fn other_engine(&self) -> SessionEngine {
        let store = SqliteStore::open(&self.folder.path().join("s.db")).unwrap();
        SessionEngine::new(Arc::new(store), Arc::clone(&self.clock) as Arc<dyn Clock>)
    }

    /// Sends the conversation with this number of messages. Returns the sent body.
    pub(crate) fn send(&mut self, n_messages: usize) -> String {
        self.n_messages = n_messages;
        self.resend()
    }

    /// Sends the last body again.
    pub(crate) fn resend(&self) -> String {
        request(&self.engine, "s", &body(self.n_messages), &terms("fanfold", WINDOW)).body
    }

    /// The summary model and the main model.
    pub(crate) fn models(&self) -> SummaryModels {
        let models = vec![summary_model(&self.summary, "little"), summary_model(&self.main, "large")];
        SummaryModels { models, abort_on_failure: false }
    }

    /// Runs a background job.
    pub(crate) fn summarise_in_background(&self) -> JobOutcome {
        self.summarise(&self.models(), false)
    }

    /// Runs a job requested by hand.
    pub(crate) fn summarise_by_hand(&self) -> JobOutcome {
        self.summarise(&self.models(), true)
    }

    pub(crate) fn summarise(&self, models: &SummaryModels, is_by_hand: bool) -> JobOutcome {
        let task = SummaryTask { session: &id("s"), focus: "", is_by_hand };
        self.engine.summarise(&task, models, &mut |_| {}).unwrap()
    }

    /// Lets the next request to the summary model fail.
    pub(crate) fn fail_summary_model(&self, fault: Fault) {
        self.summary.fault(fault);
    }

    /// Lets the next request to each model fail.
    pub(crate) fn fail_both_models(&self, fault: &Fault) {
        self.summary.fault(fault.clone());
        self.main.fault(fault.clone());
    }

    pub(crate) fn events(&self, kind: &str) -> Vec<EventRow> {
        let all = self.engine.store().events(&id("s"), 0).unwrap();
        all.into_iter().filter(|event| event.kind == kind).collect()
    }

    /// The view in text notation.
    pub(crate) fn view(&self) -> String {
        let look = |followed: &mut fanfold_engine::FoldedConversation| {
            let view = followed.view().unwrap();
            assert!(view.tokens <= Tokens(WINDOW), "{} tokens", view.tokens);
            print_view(followed.session.transcript(), &view)
        };
        self.engine.with_cached(&id("s"), look).unwrap()
    }

    /// Checks that the store has every message and can recall every handle of the view.
    pub(crate) fn check_nothing_is_lost(&self) {
        let row = self.engine.row(&id("s")).unwrap();
        let stored = self.engine.store().chain(row.tip.unwrap(), 0..u32::MAX).unwrap();
        assert_eq!(stored.len(), self.n_messages);
        let handles = self.engine.with_cached(&id("s"), |followed| followed.view().unwrap().handles).unwrap();
        assert!(!handles.is_empty());
        for handle in handles {
            let from_store = self.engine.recall(&id("s"), handle, &Extent::Whole).unwrap();
            let from_cache =
                self.engine.with_cached(&id("s"), |followed| followed.session.recall(handle, &Extent::Whole));
            assert_eq!(Some(from_store), from_cache.unwrap().ok());
        }
        assert!(self.engine.store().check(fanfold_store::CheckMode::Report).unwrap().is_empty());
    }
}

/// The body of a conversation with this number of messages.
pub(crate) fn body(n_messages: usize) -> String {
    chat(&long_chat(200)[..n_messages])
}

/// A model of a provider, with an invented key.
pub(crate) fn summary_model(upstream: &Upstream, model: &str) -> SummaryModel {
    summary_model_at(
        &format!("{}/v1", upstream.url()),
        model,
        KeySource::Command(format!("echo not-a-key-{model}")),
    )
}

pub(crate) fn summary_model_at(url: &str, model: &str, key: KeySource) -> SummaryModel {
    let timeouts = Timeouts { connect: TIMEOUT, first: TIMEOUT, idle: TIMEOUT, ..Timeouts::default() };
    let endpoint =
        Endpoint { timeouts, n_retries: 0, ..Endpoint::new(Provider::usual(), url, model).with_key(key) };
    let client = ModelClient::new(endpoint).unwrap();
    SummaryModel {
        model: model.to_owned(),
        server: url.to_owned(),
        window: Tokens(4_000),
        writer: Arc::new(client),
    }
}
