//! A call from start to end: a blocking thread, a deadline, and an end when the client no longer waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fanfold_store::search::{NoProfiles, Profiles};
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::source::Source;
use crate::tools::{Desk, INSTRUCTIONS, Tool};
use crate::wrong::Wrong;

/// So many calls are worked on at once; others wait for their turn.
const AT_ONCE: usize = 8;

/// How calls are answered.
#[derive(Clone)]
pub struct Settings {
    /// The session that is meant where none is named: its id, the beginning of that, or its title.
    pub session: Option<String>,
    /// Other stores of the same person.
    pub profiles: Arc<dyn Profiles + Send + Sync>,
    /// A call that takes longer is answered by an error.
    pub deadline: Duration,
    /// Told of each fold that was opened.
    pub recalled: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Default for Settings {
    fn default() -> Settings {
        let deadline = Duration::from_secs(20);
        Settings { session: None, profiles: Arc::new(NoProfiles), deadline, recalled: None }
    }
}

/// An MCP server for any number of clients. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    source: Box<dyn Source>,
    settings: Settings,
    /// Guards the machine: a call holds a place until its thread is done, even if nobody waits for it any more.
    places: Arc<Semaphore>,
}

/// A server on some sessions.
pub fn server(source: impl Source + 'static, settings: Settings) -> Server {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    Server { shared: Arc::new(Shared { source: Box::new(source), settings, places }) }
}

impl Server {
    pub(crate) fn deadline(&self) -> Duration {
        self.shared.settings.deadline
    }

    /// Answers a call; none if the client no longer wants it.
    async fn answer(
        &self,
        tool: Tool,
        given: JsonObject,
        cancelled: &CancellationToken,
    ) -> Option<Result<Vec<String>, Wrong>> {
        let ends = Instant::now() + self.deadline();
        let is_left = Arc::new(AtomicBool::new(false));
        // However this future ends, a thread that still works learns that nobody waits.
        let _leaving = Leaving(Arc::clone(&is_left));
        let work = async {
            let place = Arc::clone(&self.shared.places).acquire_owned().await;
            let shared = Arc::clone(&self.shared);
            let done = tokio::task::spawn_blocking(move || {
                let _place = place;
                let is_over = || is_left.load(Ordering::Relaxed) || Instant::now() >= ends;
                shared.run(tool, given, &is_over)
            });
            done.await.unwrap_or_else(|_| {
                Err(Wrong::new(
                    format!("{} failed", tool.name()),
                    "this is a bug of fanfold's; please report it",
                ))
            })
        };
        tokio::select! {
            answer = tokio::time::timeout(self.deadline(), work) => {
                Some(answer.unwrap_or_else(|_| Err(self.too_late(tool))))
            }
            () = cancelled.cancelled() => None,
        }
    }

    fn too_late(&self, tool: Tool) -> Wrong {
        let what = format!("{} took longer than {} s", tool.name(), self.deadline().as_secs_f32());
        Wrong::new(
            what,
            "ask for less (a session_id, rarer words), or try again later: the store may be busy",
        )
    }
}

/// Says so when it goes.
struct Leaving(Arc<AtomicBool>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn run(&self, tool: Tool, given: JsonObject, is_over: &dyn Fn() -> bool) -> Result<Vec<String>, Wrong> {
        let engine = match tool {
            Tool::Search => self.source.engine_to_search()?,
            Tool::Recall | Tool::Status => self.source.engine()?,
        };
        let desk = Desk {
            engine: &engine,
            session: self.settings.session.as_deref(),
            profiles: &*self.settings.profiles,
            is_over,
        };
        tool.run(&desk, given)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("fanfold", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _call: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(Tool::ALL.into_iter().map(Tool::description).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<rmcp::model::Tool> {
        Tool::named(name).map(Tool::description)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        call: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::named(&request.name) else {
            let name: String = request.name.chars().take(60).collect();
            let what = format!("there is no tool {name:?}; there are search, recall and status");
            return Err(ErrorData::invalid_params(what, None));
        };
        let began = Instant::now();
        let given = request.arguments.unwrap_or_default();
        let answer = self.answer(tool, given, &call.ct).await;
        let told = match &answer {
            Some(Ok(_)) => "done",
            Some(Err(_)) => "refused",
            None => "cancelled",
        };
        if let (Tool::Recall, Some(Ok(_)), Some(recalled)) = (tool, &answer, &self.shared.settings.recalled) {
            recalled();
        }
        // Neither what was asked nor what was answered: both are what people said.
        tracing::info!(tool = tool.name(), ms = began.elapsed().as_millis() as u64, "{told}");
        let blocks = |texts: Vec<String>| texts.into_iter().map(ContentBlock::text).collect();
        let result = match answer {
            Some(Ok(texts)) => CallToolResult::success(blocks(texts)),
            Some(Err(wrong)) => CallToolResult::error(blocks(vec![wrong.to_string()])),
            None => return Err(ErrorData::internal_error("the call was cancelled", None)),
        };
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use fanfold_engine::{Engine, MachineClock};
    use fanfold_store::MemoryStore;
    use serde_json::{Value, json};

    use super::*;
    use crate::source::Unopened;

    /// A store that takes its time, or fails as nothing should.
    struct Odd(Duration);

    impl Source for Odd {
        fn engine(&self) -> Result<Arc<Engine>, Unopened> {
            assert!(!self.0.is_zero(), "a bug");
            std::thread::sleep(self.0);
            Ok(Arc::new(Engine::new(Arc::new(MemoryStore::default()), Arc::new(MachineClock))))
        }
    }

    fn odd(source_ms: u64, deadline_ms: u64) -> Server {
        let settings = Settings { deadline: Duration::from_millis(deadline_ms), ..Settings::default() };
        server(Odd(Duration::from_millis(source_ms)), settings)
    }

    async fn status(server: &Server, cancelled: &CancellationToken) -> Option<Result<Vec<String>, Wrong>> {
        let Value::Object(given) = json!({}) else { panic!("it is an object") };
        server.answer(Tool::Status, given, cancelled).await
    }

    #[tokio::test]
    async fn a_call_that_takes_too_long_is_an_error_with_a_hint() {
        let answer = status(&odd(400, 40), &CancellationToken::new()).await.unwrap();
        let wrong = answer.unwrap_err();
        assert_eq!(wrong.what, "status took longer than 0.04 s");
        assert!(wrong.hint.contains("try again later"));
    }

    #[tokio::test]
    async fn a_cancelled_call_is_not_waited_for() {
        let cancelled = CancellationToken::new();
        let began = Instant::now();
        let server = odd(2_000, 10_000);
        let (answer, ()) = tokio::join!(status(&server, &cancelled), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancelled.cancel();
        });
        assert!(answer.is_none());
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_panic_of_ours_is_an_error_of_the_tool() {
        let answer = status(&odd(0, 10_000), &CancellationToken::new()).await.unwrap();
        assert_eq!(answer.unwrap_err().what, "status failed");
    }

    #[tokio::test]
    async fn more_calls_than_places_are_all_answered() {
        let server = odd(20, 10_000);
        let cancelled = CancellationToken::new();
        let calls: Vec<_> = (0..3 * AT_ONCE)
            .map(|_| {
                let (server, cancelled) = (server.clone(), cancelled.clone());
                tokio::spawn(async move { status(&server, &cancelled).await })
            })
            .collect();
        for call in calls {
            let texts = call.await.unwrap().unwrap().unwrap();
            assert!(texts[0].contains("no session is kept yet"), "{texts:?}");
        }
    }
}
