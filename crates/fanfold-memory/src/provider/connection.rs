//! A provider that is spoken to, whichever kind it is.

use std::time::{Duration, Instant};

use crate::provider::config::{MemoryProvider, ProviderAddress};
use crate::provider::error::MemoryError;
use crate::provider::http::HttpProvider;
use crate::provider::mcp::McpProvider;
use crate::provider::tool_names::NameConflict;

/// A provider that is spoken to.
pub(crate) enum ProviderConnection {
    Mcp(Box<McpProvider>),
    Http(HttpProvider),
}

/// What a provider is, seen by trying it.
#[derive(Debug, Clone)]
pub struct ProviderCheck {
    /// What it calls itself.
    pub name: String,
    /// Its tools, each with the arguments it takes.
    pub tools: Vec<(String, Vec<String>)>,
    /// Tools that are not used, and why.
    pub rejected_tools: Vec<(String, NameConflict)>,
    /// What is called, a line for each.
    pub calls: Vec<String>,
    /// How long it took to be there.
    pub startup: Duration,
    /// How long a search took, and how many characters it found.
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

    pub(crate) async fn search(&self, talk: &str, question: &str) -> Result<String, MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => mcp.search(talk, question).await,
            ProviderConnection::Http(http) => http.search(talk, question).await,
        }
    }

    pub(crate) async fn sync(&self, talk: &str, user: &str, assistant: &str) -> Result<(), MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => {
                mcp.write(talk, &format!("user: {user}\nassistant: {assistant}")).await
            }
            ProviderConnection::Http(http) => http.sync(talk, user, assistant).await,
        }
    }

    pub(crate) async fn offer(&self, talk: &str, texts: &[String]) -> Result<(), MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => {
                for text in texts {
                    mcp.write(talk, text).await?;
                }
                Ok(())
            }
            ProviderConnection::Http(http) => http.offer(talk, texts).await,
        }
    }

    pub(crate) async fn end(&self, talk: &str) -> Result<(), MemoryError> {
        match self {
            // There is no tool for that: what was written is there.
            ProviderConnection::Mcp(_) => Ok(()),
            ProviderConnection::Http(http) => http.end(talk).await,
        }
    }

    pub(crate) async fn close(&self) {
        if let ProviderConnection::Mcp(mcp) = self {
            mcp.close().await;
        }
    }

    /// Makes the connection, where there is one.
    pub(crate) async fn warm_up(&self) -> Result<(), MemoryError> {
        match self {
            ProviderConnection::Mcp(mcp) => mcp.open().await?.chosen.clone().map(drop),
            ProviderConnection::Http(_) => Ok(()),
        }
    }

    /// Ends it at once.
    pub(crate) fn kill(&self) {
        if let ProviderConnection::Mcp(mcp) = self {
            mcp.kill();
        }
    }

    /// Tries it.
    pub(crate) async fn check(&self, question: &str) -> Result<ProviderCheck, MemoryError> {
        let began = Instant::now();
        let mut checked = match self {
            ProviderConnection::Mcp(mcp) => {
                let open = mcp.open().await?;
                let chosen = open.chosen.clone()?;
                let names = |tool: &crate::provider::tool_selection::MemoryTool| {
                    (tool.name.clone(), tool.arguments.iter().map(|argument| argument.name.clone()).collect())
                };
                ProviderCheck {
                    name: open.name.clone(),
                    tools: open.tools.iter().map(names).collect(),
                    rejected_tools: open.refused.clone(),
                    calls: chosen.describe(),
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
        let found = self.search("fanfold check", question).await?;
        checked.search = (began.elapsed(), found.chars().count());
        Ok(checked)
    }
}
