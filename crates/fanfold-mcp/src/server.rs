//! Runs a tool call on a blocking thread, with a deadline, and cancels it when the client disconnects.

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

use crate::source::{EngineSource, StoreSource};
use crate::tool_error::ToolError;
use crate::tools::{INSTRUCTIONS, Tool, ToolContext};

/// Calls that run at the same time; others wait.
const MAX_RUNNING: usize = 8;

/// How calls are answered.
#[derive(Clone)]
pub struct ServerSettings {
    /// The session for calls that name none: its id, a prefix of the id, or its title.
    pub session: Option<String>,
    /// Other stores of the user.
    pub profiles: Arc<dyn Profiles + Send + Sync>,
    /// Calls that take longer return an error.
    pub deadline: Duration,
    /// Called after each recall.
    pub on_recall: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Default for ServerSettings {
    fn default() -> ServerSettings {
        let deadline = Duration::from_secs(20);
        ServerSettings { session: None, profiles: Arc::new(NoProfiles), deadline, on_recall: None }
    }
}

/// An MCP server for any number of clients. Clones share their state.
#[derive(Clone)]
pub struct Server {
    shared: Arc<ServerState>,
}

struct ServerState {
    source: Box<dyn EngineSource>,
    settings: ServerSettings,
    /// Limits the running calls. A call keeps its permit until its thread ends, even after it was cancelled.
    permits: Arc<Semaphore>,
}

impl Server {
    /// A server on the sessions of a store, which need not exist yet.
    pub fn new(store_address: &str, settings: ServerSettings) -> Server {
        Server::with_source(StoreSource::new(store_address), settings)
    }

    fn with_source(source: impl EngineSource + 'static, settings: ServerSettings) -> Server {
        let permits = Arc::new(Semaphore::new(MAX_RUNNING));
        Server { shared: Arc::new(ServerState { source: Box::new(source), settings, permits }) }
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.shared.settings.deadline
    }

    /// The answer to a call; `None` if it was cancelled.
    async fn answer(
        &self,
        tool: Tool,
        arguments: JsonObject,
        cancelled: &CancellationToken,
    ) -> Option<Result<Vec<String>, ToolError>> {
        let deadline = Instant::now() + self.deadline();
        let is_abandoned = Arc::new(AtomicBool::new(false));
        // Stops the thread however this future ends.
        let _guard = AbandonOnDrop(Arc::clone(&is_abandoned));
        let work = async {
            let permit = Arc::clone(&self.shared.permits).acquire_owned().await;
            let shared = Arc::clone(&self.shared);
            let done = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                let is_over = || is_abandoned.load(Ordering::Relaxed) || Instant::now() >= deadline;
                shared.run(tool, arguments, &is_over)
            });
            done.await.unwrap_or_else(|_| {
                Err(ToolError::new(
                    format!("{} failed", tool.name()),
                    "this is a bug in fanfold; please report it",
                ))
            })
        };
        tokio::select! {
            answer = tokio::time::timeout(self.deadline(), work) => {
                Some(answer.unwrap_or_else(|_| Err(self.timeout_error(tool))))
            }
            () = cancelled.cancelled() => None,
        }
    }

    fn timeout_error(&self, tool: Tool) -> ToolError {
        let message = format!("{} took longer than {} s", tool.name(), self.deadline().as_secs_f32());
        ToolError::new(
            message,
            "narrow the call (a session_id, rarer words), or try again later: the store may be busy",
        )
    }
}

/// Sets the flag when it is dropped.
struct AbandonOnDrop(Arc<AtomicBool>);

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl ServerState {
    fn run(
        &self,
        tool: Tool,
        arguments: JsonObject,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Vec<String>, ToolError> {
        let engine = match tool {
            Tool::Search => self.source.engine_to_search()?,
            Tool::Recall | Tool::Status => self.source.engine()?,
        };
        let context = ToolContext {
            engine: &engine,
            session: self.settings.session.as_deref(),
            profiles: &*self.settings.profiles,
            is_over,
        };
        tool.run(&context, arguments)
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
        Tool::find(name).map(Tool::description)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        call: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::find(&request.name) else {
            let name: String = request.name.chars().take(60).collect();
            let message = format!("there is no tool {name:?}; the tools are search, recall and status");
            return Err(ErrorData::invalid_params(message, None));
        };
        let start = Instant::now();
        let answer = self.answer(tool, request.arguments.unwrap_or_default(), &call.ct).await;
        let outcome = match &answer {
            Some(Ok(_)) => "done",
            Some(Err(_)) => "failed",
            None => "cancelled",
        };
        if let (Tool::Recall, Some(Ok(_)), Some(on_recall)) = (tool, &answer, &self.shared.settings.on_recall)
        {
            on_recall();
        }
        // Arguments and answers are private, so they are not logged.
        tracing::info!(tool = tool.name(), ms = start.elapsed().as_millis() as u64, "{outcome}");
        let blocks = |texts: Vec<String>| texts.into_iter().map(ContentBlock::text).collect();
        let result = match answer {
            Some(Ok(texts)) => CallToolResult::success(blocks(texts)),
            Some(Err(error)) => CallToolResult::error(blocks(vec![error.to_string()])),
            None => return Err(ErrorData::internal_error("the call was cancelled", None)),
        };
        Ok(result.into())
    }
}

#[cfg(test)]
mod tests {
    use fanfold_engine::{MachineClock, SessionEngine};
    use fanfold_store::SqliteStore;

    use super::*;
    use crate::source::SourceError;

    /// A store that opens after a delay, or panics if the delay is zero.
    struct SlowSource(Duration);

    impl EngineSource for SlowSource {
        fn engine(&self) -> Result<Arc<SessionEngine>, SourceError> {
            assert!(!self.0.is_zero(), "a bug");
            std::thread::sleep(self.0);
            Ok(Arc::new(SessionEngine::new(Arc::new(SqliteStore::in_memory()), Arc::new(MachineClock))))
        }
    }

    fn slow_server(source_ms: u64, deadline_ms: u64) -> Server {
        let settings =
            ServerSettings { deadline: Duration::from_millis(deadline_ms), ..ServerSettings::default() };
        Server::with_source(SlowSource(Duration::from_millis(source_ms)), settings)
    }

    async fn call_status(
        server: &Server,
        cancelled: &CancellationToken,
    ) -> Option<Result<Vec<String>, ToolError>> {
        server.answer(Tool::Status, JsonObject::new(), cancelled).await
    }

    #[tokio::test]
    async fn a_call_beyond_its_deadline_is_an_error_with_a_hint() {
        let answer = call_status(&slow_server(400, 40), &CancellationToken::new()).await.unwrap();
        let error = answer.unwrap_err();
        assert_eq!(error.message, "status took longer than 0.04 s");
        assert!(error.hint.contains("try again later"));
    }

    #[tokio::test]
    async fn a_cancelled_call_returns_at_once() {
        let cancelled = CancellationToken::new();
        let start = Instant::now();
        let server = slow_server(2_000, 10_000);
        let (answer, ()) = tokio::join!(call_status(&server, &cancelled), async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            cancelled.cancel();
        });
        assert!(answer.is_none());
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn a_panic_becomes_a_tool_error() {
        let answer = call_status(&slow_server(0, 10_000), &CancellationToken::new()).await.unwrap();
        assert_eq!(answer.unwrap_err().message, "status failed");
    }

    #[tokio::test]
    async fn calls_beyond_the_limit_wait_and_are_answered() {
        let server = slow_server(20, 10_000);
        let cancelled = CancellationToken::new();
        let calls: Vec<_> = (0..3 * MAX_RUNNING)
            .map(|_| {
                let (server, cancelled) = (server.clone(), cancelled.clone());
                tokio::spawn(async move { call_status(&server, &cancelled).await })
            })
            .collect();
        for call in calls {
            let texts = call.await.unwrap().unwrap().unwrap();
            assert!(texts[0].contains("no session is kept yet"), "{texts:?}");
        }
    }
}
