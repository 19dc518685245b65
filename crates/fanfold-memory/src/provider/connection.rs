//! A connection to a provider of any kind.

use std::time::{Duration, Instant};

use crate::provider::config::{MemoryProvider, ProviderAddress};
use crate::provider::error::MemoryError;
use crate::provider::http::HttpProvider;
use crate::provider::mcp::McpProvider;
use crate::provider::tool_names::NameConflict;

/// A connection to a provider.
pub(crate) enum ProviderConnection {
    Mcp(Box<McpProvider>),
    Http(HttpProvider),
}

/// The result of testing a provider.
#[derive(Debug, Clone)]
pub struct ProviderCheck {
    /// The name it reports.
    pub name: String,
    /// Its tools with the names of their arguments.
    pub tools: Vec<(String, Vec<String>)>,
    /// Tools that are not used, and why.
    pub rejected_tools: Vec<(String, NameConflict)>,
    /// A description of each call that fanfold makes.
    pub calls: Vec<String>,
    /// Time to connect.
    pub startup: Duration,
    /// Duration of a search, and the length of its result in characters.
    pub search: (Duration, usize),
}

impl ProviderConnection {
    pub(crate) fn new(provider: MemoryProvider, call: Duration) -> Result<ProviderConnection, MemoryError> {
        match &provider.address {
            ProviderAddress::Http { url, key } => {
                Ok(ProviderConnection::Http(HttpProvider::new(url, key.clone(), call)?))
            }
            ProviderAddress::Program { .. } | ProviderAddress::Mcp { .. } => {
                Ok(ProviderConnection::Mcp(Box::new(McpProvider::new(provider, call))))
            }
        }
    }

    pub(crate) async fn search(&self, conversation: &str, query: &str) -> Result<String, MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => mcp.search(conversation, query).await,
            ProviderConnection::Http(http) => http.search(conversation, query).await,
        }
    }

    pub(crate) async fn sync(
        &self,
        conversation: &str,
        user: &str,
        assistant: &str,
    ) -> Result<(), MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => {
                mcp.write(conversation, &format!("user: {user}\nassistant: {assistant}")).await
            }
            ProviderConnection::Http(http) => http.sync(conversation, user, assistant).await,
        }
    }

    pub(crate) async fn offer(&self, conversation: &str, texts: &[String]) -> Result<(), MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => {
                for text in texts {
                    mcp.write(conversation, text).await?;
                }
                Ok(())
            }
            ProviderConnection::Http(http) => http.offer(conversation, texts).await,
        }
    }

    pub(crate) async fn end(&self, conversation: &str) -> Result<(), MemoryError> {
        match self {
            // MCP has no such call; every text was already written.
            ProviderConnection::Mcp(_) => Ok(()),
            ProviderConnection::Http(http) => http.end(conversation).await,
        }
    }

    pub(crate) async fn close(&self) {
        if let ProviderConnection::Mcp(mcp) = self {
            mcp.close().await;
        }
    }

    /// Connects, if the protocol has connections.
    pub(crate) async fn warm_up(&self) -> Result<(), MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => mcp.open().await?.selection.clone().map(drop),
            ProviderConnection::Http(_) => Ok(()),
        }
    }

    /// Closes the connection without waiting.
    pub(crate) fn kill(&self) {
        if let ProviderConnection::Mcp(mcp) = self {
            mcp.kill();
        }
    }

    /// Connects and runs a search.
    pub(crate) async fn check(&self, query: &str) -> Result<ProviderCheck, MemoryError> {
        let began = Instant::now();
        let mut checked = match self {
            ProviderConnection::Mcp(mcp) => {
                let open = mcp.open().await?;
                let selection = open.selection.clone()?;
                let names = |tool: &crate::provider::tool_selection::MemoryTool| {
                    (tool.name.clone(), tool.arguments.iter().map(|argument| argument.name.clone()).collect())
                };
                ProviderCheck {
                    name: open.name.clone(),
                    tools: open.tools.iter().map(names).collect(),
                    rejected_tools: open.rejected.clone(),
                    calls: selection.describe(),
                    startup: began.elapsed(),
                    search: (Duration::ZERO, 0),
                }
            }
            ProviderConnection::Http(_) => ProviderCheck {
                name: "HTTP".to_owned(),
                tools: Vec::new(),
                rejected_tools: Vec::new(),
                calls: vec!["POST /prefetch, /sync, /offer and /end".to_owned()],
                startup: began.elapsed(),
                search: (Duration::ZERO, 0),
            },
        };
        let began = Instant::now();
        let found = self.search("fanfold check", query).await?;
        checked.search = (began.elapsed(), found.chars().count());
        Ok(checked)
    }
}
