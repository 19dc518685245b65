//! A memory server that speaks MCP: a child process, or a server over HTTP.
//!
//! The connection is made on first use. If the server exits, hangs or exceeds a limit, it is closed and reopened
//! after a backoff that doubles with each failure.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock, Implementation,
};
use rmcp::service::{RunningService, ServiceError, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::provider::child_program::{ChildProgram, PipedProgram};
use crate::provider::config::{MemoryKey, MemoryProvider, ProviderAddress};
use crate::provider::error::{MemoryError, excerpt};
use crate::provider::http::http_client;
use crate::provider::limited_http::{LimitedHttpClient, MAX_ANSWER_BYTES};
use crate::provider::search_results::SearchResults;
use crate::provider::search_terms::search_terms;
use crate::provider::tool_names::{NameConflict, reject_conflicting_names};
use crate::provider::tool_selection::{CREATE, MemoryTool, OBSERVE, SelectedTools, WriteTool, with_text};

/// Backoff after the first failure.
const MIN_BACKOFF: Duration = Duration::from_secs(1);
/// Limits the backoff to about a minute.
const MAX_DOUBLINGS: u32 = 6;
/// Maximum length of a query in bytes.
const MAX_QUERY_BYTES: usize = 2_000;
/// Time for a program to exit after its stdin was closed.
const EXIT_TIMEOUT: Duration = Duration::from_millis(1_500);

/// A memory server that speaks MCP.
pub(crate) struct McpProvider {
    provider: MemoryProvider,
    call: Duration,
    /// Guards the connection. It is held while connecting, never during a call.
    state: tokio::sync::Mutex<ConnectionState>,
    n_failures: AtomicU32,
    /// The entities that are known to exist on the server.
    entities: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct ConnectionState {
    open: Option<Arc<McpConnection>>,
    retry_at: Option<Instant>,
}

/// An open connection.
pub(crate) struct McpConnection {
    service: RunningService<RoleClient, ClientConfig>,
    /// Taken and killed when the connection is closed, even if calls are pending. The lock guards only that.
    program: Mutex<Option<ChildProgram>>,
    /// The name that the server reports.
    pub(crate) name: String,
    pub(crate) tools: Vec<MemoryTool>,
    pub(crate) rejected: Vec<(String, NameConflict)>,
    pub(crate) selection: Result<SelectedTools, MemoryError>,
}

impl McpProvider {
    pub(crate) fn new(provider: MemoryProvider, call: Duration) -> McpProvider {
        McpProvider {
            provider,
            call,
            state: tokio::sync::Mutex::default(),
            n_failures: AtomicU32::new(0),
            entities: Mutex::default(),
        }
    }

    /// Searches and returns the results as lines.
    pub(crate) async fn search(&self, conversation: &str, query: &str) -> Result<String, MemoryError> {
        let open = self.open().await?;
        let selection = open.selection.clone()?;
        let search = selection.search;
        let query = &query[..query.floor_char_boundary(MAX_QUERY_BYTES)];
        let queries = if search.is_literal { search_terms(query) } else { vec![query.to_owned()] };
        let calls = queries.iter().map(|query| {
            self.call(&open, &search.tool, with_text(&search.fixed_arguments, &search.argument, query))
        });
        let texts = futures_util::future::try_join_all(calls).await?;
        let terms = if search.is_literal { queries } else { Vec::new() };
        Ok(SearchResults { terms, texts }.lines(conversation))
    }

    /// Stores a text.
    pub(crate) async fn write(&self, conversation: &str, text: &str) -> Result<(), MemoryError> {
        let open = self.open().await?;
        match open.selection.clone()?.write {
            None => Ok(()),
            Some(WriteTool::Text { tool, argument, fixed_arguments }) => {
                self.call(&open, &tool, with_text(&fixed_arguments, &argument, text)).await.map(drop)
            }
            Some(WriteTool::Graph) => {
                let is_known = self.entities().contains(conversation);
                if !is_known {
                    let entity =
                        json!({ "name": conversation, "entityType": "conversation", "observations": [] });
                    self.call(&open, CREATE, object(json!({ "entities": [entity] }))).await?;
                    self.entities().insert(conversation.to_owned());
                }
                let observation = json!({ "entityName": conversation, "contents": [text] });
                self.call(&open, OBSERVE, object(json!({ "observations": [observation] }))).await.map(drop)
            }
        }
    }

    fn entities(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.entities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, opened if necessary.
    pub(crate) async fn open(&self) -> Result<Arc<McpConnection>, MemoryError> {
        let mut state = self.state.lock().await;
        if let Some(open) = &state.open {
            if !open.service.is_transport_closed() {
                return Ok(Arc::clone(open));
            }
            open.end();
            state.open = None;
            self.record_failure(&mut state);
        }
        let backoff = state.retry_at.and_then(|until| until.checked_duration_since(Instant::now()));
        if let Some(backoff) = backoff.filter(|backoff| !backoff.is_zero()) {
            return Err(MemoryError::BackingOff(backoff));
        }
        let opened = match timeout(self.call, connect(&self.provider)).await {
            Ok(opened) => opened,
            Err(_) => Err(MemoryError::Timeout(self.call)),
        };
        match opened {
            Ok(open) => {
                let open = Arc::new(open);
                // A new process may store its entities elsewhere.
                self.entities().clear();
                state.open = Some(Arc::clone(&open));
                Ok(open)
            }
            Err(error) => {
                self.record_failure(&mut state);
                Err(error)
            }
        }
    }

    fn record_failure(&self, state: &mut ConnectionState) {
        let n_failures = self.n_failures.fetch_add(1, Ordering::Relaxed);
        state.retry_at = Some(Instant::now() + MIN_BACKOFF * (1 << n_failures.min(MAX_DOUBLINGS)));
    }

    async fn call(
        &self,
        open: &Arc<McpConnection>,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, MemoryError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let error = match timeout(self.call, open.service.call_tool(params)).await {
            Ok(Ok(result)) => {
                self.n_failures.store(0, Ordering::Relaxed);
                return result_text(result);
            }
            Ok(Err(ServiceError::McpError(error))) => {
                return Err(MemoryError::Refused(excerpt(&error.message)));
            }
            Ok(Err(error)) => MemoryError::Disconnected(excerpt(&error.to_string())),
            Err(_) => MemoryError::Timeout(self.call),
        };
        let mut state = self.state.lock().await;
        let is_same = state.open.as_ref().is_some_and(|current| Arc::ptr_eq(current, open));
        if is_same {
            state.open = None;
            self.record_failure(&mut state);
            open.end();
        }
        Err(error)
    }

    /// Closes the connection and waits a moment for the program to exit.
    pub(crate) async fn close(&self) {
        let Some(open) = self.state.lock().await.open.take() else { return };
        open.service.cancellation_token().cancel();
        let program = open.take_program();
        if let Some(program) = program {
            program.end(EXIT_TIMEOUT).await;
        }
    }

    /// Closes the connection without waiting, unless it is being opened.
    pub(crate) fn kill(&self) {
        if let Some(open) = self.state.try_lock().ok().and_then(|mut state| state.open.take()) {
            open.end();
        }
    }
}

impl McpConnection {
    fn take_program(&self) -> Option<ChildProgram> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Closes the connection and kills the program.
    fn end(&self) {
        self.service.cancellation_token().cancel();
        drop(self.take_program());
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// The text of a tool result.
fn result_text(result: CallToolResult) -> Result<String, MemoryError> {
    let texts: Vec<String> = result
        .content
        .into_iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text),
            _ => None,
        })
        .collect();
    let mut text = texts.join("\n");
    if text.is_empty()
        && let Some(structured) = result.structured_content
    {
        text = structured.to_string();
    }
    if result.is_error == Some(true) {
        return Err(MemoryError::Refused(excerpt(&text)));
    }
    if text.len() > MAX_ANSWER_BYTES { Err(MemoryError::TooLong(MAX_ANSWER_BYTES)) } else { Ok(text) }
}

async fn connect(provider: &MemoryProvider) -> Result<McpConnection, MemoryError> {
    let client_info = Implementation::new("fanfold", env!("CARGO_PKG_VERSION"));
    let client = ClientConfig::new(ClientCapabilities::default(), client_info);
    let unreachable = |message: String| MemoryError::Unreachable(message);
    let (service, program) = match &provider.address {
        ProviderAddress::Program { program, arguments, environment } => {
            let started = ChildProgram::start(program, arguments, environment)?;
            let PipedProgram { mut program, output, input } = started;
            let transport =
                AsyncRwTransport::new_client(output, input).with_max_line_length(MAX_ANSWER_BYTES);
            match serve_client(client, transport).await {
                Ok(service) => (service, Some(program)),
                Err(error) => return Err(unreachable(program.failure_message(&error.to_string()).await)),
            }
        }
        ProviderAddress::Mcp { url, key } | ProviderAddress::Http { url, key } => {
            let transport = http_transport(url, key.as_ref())?;
            let service = serve_client(client, transport).await;
            (service.map_err(|error| unreachable(excerpt(&error.to_string())))?, None)
        }
    };
    let listed = service.list_all_tools().await;
    let listed = listed.map_err(|error| MemoryError::Disconnected(excerpt(&error.to_string())))?;
    let tools = listed.iter().map(|tool| MemoryTool::from_schema(&tool.name, &tool.input_schema)).collect();
    let (tools, rejected) = reject_conflicting_names(tools, |tool: &MemoryTool| &tool.name);
    let selection = SelectedTools::select(&tools, &provider.tools);
    let info = service.peer_info().and_then(|info| info.server_info.clone());
    let name = info.map(|info| excerpt(&format!("{} {}", info.name, info.version))).unwrap_or_default();
    Ok(McpConnection { service, program: Mutex::new(program), name, tools, rejected, selection })
}

fn http_transport(
    url: &str,
    key: Option<&MemoryKey>,
) -> Result<StreamableHttpClientTransport<LimitedHttpClient>, MemoryError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(MAX_ANSWER_BYTES);
    if let Some(key) = key {
        config = config.auth_header(key.0.clone());
    }
    Ok(StreamableHttpClientTransport::with_client(LimitedHttpClient(http_client(url)?), config))
}
