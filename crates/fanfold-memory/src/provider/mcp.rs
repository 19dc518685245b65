//! A server of memory that speaks MCP: a program of ours, or one over HTTP.
//!
//! It is started when it is first needed. One that ends, hangs or floods is ended and started again, after a rest that
//! doubles as long as it does no work.

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

use crate::provider::child_program::{ChildProgram, StartedProgram};
use crate::provider::config::{MemoryProvider, ProviderAddress, ProviderKey};
use crate::provider::error::{MemoryError, excerpt};
use crate::provider::http::http_client;
use crate::provider::limited_http::{LONGEST, LimitedHttpClient};
use crate::provider::search_results::SearchResults;
use crate::provider::search_terms::search_terms;
use crate::provider::tool_names::{NameConflict, reject_conflicting_names};
use crate::provider::tool_selection::{CREATE, MemoryTool, OBSERVE, SelectedTools, WriteTool, with_text};

/// The shortest rest after a failure.
const REST: Duration = Duration::from_secs(1);
/// It doubles so often at most: to about a minute.
const MOST_DOUBLINGS: u32 = 6;
/// Of a question no more is asked.
const LONGEST_QUESTION: usize = 2_000;
/// So long a program that is no longer needed may take to end.
const ENDING: Duration = Duration::from_millis(1_500);

/// A server of memory that speaks MCP.
pub(crate) struct McpProvider {
    provider: MemoryProvider,
    call: Duration,
    /// Guards the connection; held while it is made, never during a call.
    link: tokio::sync::Mutex<ConnectionState>,
    n_failed: AtomicU32,
    /// The entities that are known to be there.
    entities: Mutex<HashSet<String>>,
}

#[derive(Default)]
struct ConnectionState {
    open: Option<Arc<McpConnection>>,
    rest_until: Option<Instant>,
}

/// A connection.
pub(crate) struct McpConnection {
    service: RunningService<RoleClient, ClientConfig>,
    /// It ends with the connection, whoever still waits for an answer. Guards nothing but its end.
    program: Mutex<Option<ChildProgram>>,
    /// What the server calls itself.
    pub(crate) name: String,
    pub(crate) tools: Vec<MemoryTool>,
    pub(crate) refused: Vec<(String, NameConflict)>,
    pub(crate) chosen: Result<SelectedTools, MemoryError>,
}

impl McpProvider {
    pub(crate) fn new(provider: MemoryProvider, call: Duration) -> McpProvider {
        McpProvider {
            provider,
            call,
            link: tokio::sync::Mutex::default(),
            n_failed: AtomicU32::new(0),
            entities: Mutex::default(),
        }
    }

    /// Searches, and gives what was found as lines.
    pub(crate) async fn search(&self, talk: &str, question: &str) -> Result<String, MemoryError> {
        let open = self.open().await?;
        let chosen = open.chosen.clone()?;
        let search = chosen.search;
        let question = &question[..question.floor_char_boundary(LONGEST_QUESTION)];
        let asked = if search.is_literal { search_terms(question) } else { vec![question.to_owned()] };
        let calls = asked
            .iter()
            .map(|asked| self.call(&open, &search.tool, with_text(&search.always, &search.argument, asked)));
        let texts = futures_util::future::try_join_all(calls).await?;
        let terms = if search.is_literal { asked } else { Vec::new() };
        Ok(SearchResults { terms, texts }.lines(talk))
    }

    /// Writes a text down.
    pub(crate) async fn write(&self, talk: &str, text: &str) -> Result<(), MemoryError> {
        let open = self.open().await?;
        match open.chosen.clone()?.write {
            None => Ok(()),
            Some(WriteTool::Text { tool, argument, always }) => {
                self.call(&open, &tool, with_text(&always, &argument, text)).await.map(drop)
            }
            Some(WriteTool::Graph) => {
                let is_known = self.entities().contains(talk);
                if !is_known {
                    let entity = json!({ "name": talk, "entityType": "conversation", "observations": [] });
                    self.call(&open, CREATE, object(json!({ "entities": [entity] }))).await?;
                    self.entities().insert(talk.to_owned());
                }
                let observation = json!({ "entityName": talk, "contents": [text] });
                self.call(&open, OBSERVE, object(json!({ "observations": [observation] }))).await.map(drop)
            }
        }
    }

    fn entities(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.entities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, made if there is none.
    pub(crate) async fn open(&self) -> Result<Arc<McpConnection>, MemoryError> {
        let mut link = self.link.lock().await;
        if let Some(open) = &link.open {
            if !open.service.is_transport_closed() {
                return Ok(Arc::clone(open));
            }
            open.end();
            link.open = None;
            self.record_failure(&mut link);
        }
        let rest = link.rest_until.and_then(|until| until.checked_duration_since(Instant::now()));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            return Err(MemoryError::BackingOff(rest));
        }
        let opened = match timeout(self.call, connect(&self.provider)).await {
            Ok(opened) => opened,
            Err(_) => Err(MemoryError::Timeout(self.call)),
        };
        match opened {
            Ok(open) => {
                let open = Arc::new(open);
                // Another program may keep its entities elsewhere.
                self.entities().clear();
                link.open = Some(Arc::clone(&open));
                Ok(open)
            }
            Err(fault) => {
                self.record_failure(&mut link);
                Err(fault)
            }
        }
    }

    fn record_failure(&self, link: &mut ConnectionState) {
        let n_failed = self.n_failed.fetch_add(1, Ordering::Relaxed);
        link.rest_until = Some(Instant::now() + REST * (1 << n_failed.min(MOST_DOUBLINGS)));
    }

    async fn call(
        &self,
        open: &Arc<McpConnection>,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, MemoryError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let fault = match timeout(self.call, open.service.call_tool(params)).await {
            Ok(Ok(result)) => {
                self.n_failed.store(0, Ordering::Relaxed);
                return result_text(result);
            }
            Ok(Err(ServiceError::McpError(error))) => {
                return Err(MemoryError::Refused(excerpt(&error.message)));
            }
            Ok(Err(error)) => MemoryError::Disconnected(excerpt(&error.to_string())),
            Err(_) => MemoryError::Timeout(self.call),
        };
        let mut link = self.link.lock().await;
        let is_same = link.open.as_ref().is_some_and(|there| Arc::ptr_eq(there, open));
        if is_same {
            link.open = None;
            self.record_failure(&mut link);
            open.end();
        }
        Err(fault)
    }

    /// Ends the connection, and the program with it.
    pub(crate) async fn close(&self) {
        let Some(open) = self.link.lock().await.open.take() else { return };
        open.service.cancellation_token().cancel();
        let program = open.take_program();
        if let Some(program) = program {
            program.end(ENDING).await;
        }
    }

    /// Ends the connection at once, if it is not being made just now.
    pub(crate) fn kill(&self) {
        if let Some(open) = self.link.try_lock().ok().and_then(|mut link| link.open.take()) {
            open.end();
        }
    }
}

impl McpConnection {
    fn take_program(&self) -> Option<ChildProgram> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends it now.
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

/// What a tool said.
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
    if text.len() > LONGEST { Err(MemoryError::TooLong(LONGEST)) } else { Ok(text) }
}

async fn connect(provider: &MemoryProvider) -> Result<McpConnection, MemoryError> {
    let own = Implementation::new("fanfold", env!("CARGO_PKG_VERSION"));
    let client = ClientConfig::new(ClientCapabilities::default(), own);
    let unreachable = |words: String| MemoryError::Unreachable(words);
    let (service, program) = match &provider.address {
        ProviderAddress::Program { program, arguments, environment } => {
            let started = ChildProgram::start(program, arguments, environment)?;
            let StartedProgram { mut program, output, input } = started;
            let transport = AsyncRwTransport::new_client(output, input).with_max_line_length(LONGEST);
            match serve_client(client, transport).await {
                Ok(service) => (service, Some(program)),
                Err(error) => return Err(unreachable(program.last_words(&error.to_string()).await)),
            }
        }
        ProviderAddress::Mcp { url, key } | ProviderAddress::Http { url, key } => {
            let transport = over_http(url, key.as_ref())?;
            let service = serve_client(client, transport).await;
            (service.map_err(|error| unreachable(excerpt(&error.to_string())))?, None)
        }
    };
    let listed = service.list_all_tools().await;
    let listed = listed.map_err(|error| MemoryError::Disconnected(excerpt(&error.to_string())))?;
    let tools = listed.iter().map(|tool| MemoryTool::from_schema(&tool.name, &tool.input_schema)).collect();
    let (tools, refused) = reject_conflicting_names(tools, |tool: &MemoryTool| &tool.name);
    let chosen = SelectedTools::select(&tools, &provider.tools);
    let info = service.peer_info().and_then(|info| info.server_info.clone());
    let name = info.map(|info| excerpt(&format!("{} {}", info.name, info.version))).unwrap_or_default();
    Ok(McpConnection { service, program: Mutex::new(program), name, tools, refused, chosen })
}

fn over_http(
    url: &str,
    key: Option<&ProviderKey>,
) -> Result<StreamableHttpClientTransport<LimitedHttpClient>, MemoryError> {
    let mut config = StreamableHttpClientTransportConfig::with_uri(url).max_sse_event_size(LONGEST);
    if let Some(key) = key {
        config = config.auth_header(key.0.clone());
    }
    Ok(StreamableHttpClientTransport::with_client(LimitedHttpClient(http_client(url)?), config))
}
