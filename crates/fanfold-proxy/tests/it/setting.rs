//! The fixture: a proxy with its own store in front of a scripted provider.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fanfold_core::{Budget, EngineFactory, Policy, Tokens, Words};
use fanfold_engine::{MachineClock, Mode, SessionEngine, SummaryModels, Terms};
use fanfold_proxy::meter::Meter;
use fanfold_proxy::{
    Config, Host, Limits, ProxyMemory, Recall, Running, ServeError, Upstream as Target, Upstreams, WebAccess,
    serve,
};
use fanfold_replay::PriceTable;
use fanfold_store::{SessionId, SqliteStore, StoreError};
use fanfold_testkit::fakes::upstream::{Script, ScriptedReply, Upstream};
pub(crate) use fanfold_testkit::generators::long_chat::long_chat;
use fanfold_wire::Format;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::newest::NEWEST;

/// Duration of slow settings.
pub(crate) const SLOW: Duration = Duration::from_millis(1500);

/// A store in a folder, fold settings that count words, and switches for faults.
pub(crate) struct TestHost {
    pub(crate) file: PathBuf,
    pub(crate) window: u64,
    pub(crate) is_slow: AtomicBool,
    pub(crate) is_panicking: AtomicBool,
    /// The models that write summaries; none at first.
    pub(crate) ways: Mutex<SummaryModels>,
}

impl Host for TestHost {
    fn open(&self) -> Result<SessionEngine, StoreError> {
        Ok(SessionEngine::new(Arc::new(SqliteStore::open(&self.file)?), Arc::new(MachineClock)))
    }

    fn file(&self) -> Option<PathBuf> {
        Some(self.file.clone())
    }

    fn terms(&self, model: Option<&str>, format: Format) -> Result<Terms, String> {
        assert!(!self.is_panicking.load(Ordering::SeqCst), "the test wants a panic");
        if self.is_slow.load(Ordering::SeqCst) {
            std::thread::sleep(SLOW);
        }
        if model == Some("without-terms") {
            return Err("there are no fold settings for this model".to_owned());
        }
        Ok(Terms {
            engine: if model == Some("folded-by-newest") { NEWEST } else { EngineFactory::FANFOLD },
            policy: Policy::named("fanfold").unwrap(),
            budget: Budget::with_reserve(Tokens(self.window), Tokens::ZERO),
            prices: None,
            counter: &Words,
            format: Some(format),
            focus: String::new(),
            assumed: Vec::new(),
            described: format!("{model:?}"),
        })
    }

    fn knows_window(&self, model: &str) -> bool {
        !model.starts_with("unknown")
    }

    fn wants_summaries(&self) -> bool {
        !self.ways.lock().unwrap().models.is_empty()
    }

    fn ways(&self) -> SummaryModels {
        self.ways.lock().unwrap().clone()
    }
}

/// The settings of the fixture.
pub(crate) struct StageOptions {
    pub(crate) window: u64,
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    pub(crate) script: Script,
    pub(crate) token: Option<&'static str>,
    pub(crate) recall: Recall,
    pub(crate) ca: Option<Vec<u8>>,
    pub(crate) memory: Option<ProxyMemory>,
    pub(crate) web_access: WebAccess,
}

impl Default for StageOptions {
    fn default() -> StageOptions {
        let limits = Limits { deadline: Duration::from_secs(20), ..Limits::default() };
        let script =
            Script::new(|_| ScriptedReply { text: "It is done.".to_owned(), ..ScriptedReply::default() });
        StageOptions {
            window: 100_000,
            mode: Mode::Fold,
            limits,
            script,
            token: None,
            recall: Recall::Off,
            memory: None,
            ca: None,
            web_access: WebAccess::default(),
        }
    }
}

/// A running proxy with its surroundings.
pub(crate) struct Stage {
    _folder: TempDir,
    pub(crate) upstream: Upstream,
    pub(crate) host: Arc<TestHost>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) running: Running,
    pub(crate) client: reqwest::Client,
    pub(crate) config: Config,
}

impl Stage {
    pub(crate) async fn new(options: StageOptions) -> Stage {
        Stage::start(options, None).await
    }

    /// A proxy in front of a provider at an address.
    pub(crate) async fn with_provider_at(address: String, options: StageOptions) -> Stage {
        Stage::start(options, Some(address)).await
    }

    /// A proxy, or the error of its start.
    pub(crate) async fn try_new(options: StageOptions) -> Result<Stage, ServeError> {
        Stage::try_start(options, None).await
    }

    async fn start(options: StageOptions, address: Option<String>) -> Stage {
        Stage::try_start(options, address).await.unwrap()
    }

    async fn try_start(options: StageOptions, address: Option<String>) -> Result<Stage, ServeError> {
        let StageOptions { window, mode, limits, script, token, recall, memory, ca, web_access } = options;
        let upstream = Upstream::start(script).unwrap();
        let address = address.unwrap_or_else(|| upstream.url());
        let folder = tempfile::tempdir().unwrap();
        let host = Arc::new(TestHost {
            file: folder.path().join("store").join("s.db"),
            window,
            is_slow: AtomicBool::new(false),
            is_panicking: AtomicBool::new(false),
            ways: Mutex::default(),
        });
        let meter = Arc::new(Meter::new(PriceTable::built_in()));
        let config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            upstreams: Upstreams::one(&Target::parse(&address).unwrap()),
            host: Arc::clone(&host) as Arc<dyn Host>,
            mode,
            recall,
            memory,
            meter: Arc::clone(&meter),
            mcp: None,
            ca,
            token: token.map(|token| fanfold_proxy::Token::new(token).unwrap()),
            web_access,
            limits,
        };
        let running = serve(config.clone()).await?;
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Ok(Stage { _folder: folder, upstream, host, meter, running, client, config })
    }

    /// Stops the proxy and starts another one on its store.
    pub(crate) async fn restart(&mut self) {
        assert!(self.running.stop().await, "the proxy stops in time");
        self.running = serve(self.config.clone()).await.unwrap();
    }

    /// A proxy in front of a provider that responds to each connection with given bytes.
    pub(crate) async fn with_raw_answers(
        answers: &[&str],
        options: StageOptions,
    ) -> (Stage, Arc<Mutex<Vec<String>>>) {
        let (address, seen) = raw_provider(answers);
        (Stage::start(options, Some(address)).await, seen)
    }

    /// A proxy in front of another provider than the scripted one.
    pub(crate) async fn with_provider(url: &str, options: StageOptions) -> Stage {
        Stage::start(options, Some(url.to_owned())).await
    }

    /// Rebuilds all requests of a session from the store, and compares them with the bodies that the provider received.
    pub(crate) fn assert_rebuilds(&self, session: &str, format: Format, received: &[String]) {
        let (engine, id) = (self.host.open().unwrap(), SessionId(session.to_owned()));
        let terms_of =
            |_: &str, budget: Budget| Ok(Terms { budget, ..self.host.terms(Some("m"), format).unwrap() });
        assert_eq!(engine.requests(&id).unwrap().len(), received.len(), "each body is a recorded request");
        for (number, body) in (1..).zip(received) {
            let rebuilt = engine.rebuild(&id, number, &terms_of).unwrap();
            assert_eq!(&rebuilt.body, body, "request {number}");
            assert!(rebuilt.is_same, "the hash of request {number}");
        }
    }

    /// The bodies that the provider received.
    pub(crate) fn received(&self) -> Vec<String> {
        self.upstream.seen().iter().map(fanfold_testkit::fakes::upstream::RecordedRequest::text).collect()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.running.address())
    }

    pub(crate) fn post(&self, path: &str, body: impl Into<reqwest::Body>) -> reqwest::RequestBuilder {
        let request = self.client.post(self.url(path)).header("content-type", "application/json");
        request.header("authorization", "Bearer the-clients-own").body(body)
    }

    pub(crate) async fn chat(&self, body: &str) -> reqwest::Response {
        self.post("/v1/chat/completions", body.to_owned()).send().await.unwrap()
    }
}

/// The outcome reported by the proxy.
pub(crate) fn outcome(response: &reqwest::Response) -> String {
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    header("x-fanfold").unwrap_or_default()
}

/// The JSON of a response.
pub(crate) async fn json_of(response: reqwest::Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// The session reported by the proxy.
pub(crate) fn session(response: &reqwest::Response) -> String {
    response.headers()["x-fanfold-session"].to_str().unwrap().to_owned()
}

/// Separates parts of a response; the provider pauses between them.
pub(crate) const LATER: char = '\0';

/// A provider that responds to each connection with given bytes and closes it. It records the requests.
fn raw_provider(answers: &[&str]) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let answers: Vec<String> = answers.iter().map(|answer| (*answer).to_owned()).collect();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let written = Arc::clone(&seen);
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut request = Vec::new();
            let mut buffer = [0; 65536];
            while !is_whole(&request) {
                match stream.read(&mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(n) => request.extend_from_slice(&buffer[..n]),
                }
            }
            written.lock().unwrap().push(String::from_utf8_lossy(&request).into_owned());
            for (i, part) in answer.split(LATER).enumerate() {
                if i > 0 {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let _ = stream.write_all(part.as_bytes());
            }
        }
    });
    (address, seen)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

/// A body of Chat Completions.
pub(crate) fn chat(messages: &[Value]) -> String {
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } } });
    let tool = json!({ "type": "function", "function": { "name": "read", "parameters": parameters } });
    json!({ "model": "m", "tools": [tool], "messages": messages }).to_string()
}
