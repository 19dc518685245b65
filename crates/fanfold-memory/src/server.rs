//! A provider that is spoken to, whichever kind it is.

use std::time::{Duration, Instant};

use crate::fault::Fault;
use crate::guard::Shadow;
use crate::http::Http;
use crate::mcp::Mcp;
use crate::provider::{Place, Provider};

/// A provider that is spoken to.
pub(crate) enum Server {
    Mcp(Box<Mcp>),
    Http(Http),
}

/// What a provider is, seen by trying it.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What it calls itself.
    pub name: String,
    /// Its tools, each with the arguments it takes.
    pub tools: Vec<(String, Vec<String>)>,
    /// Tools that are not used, and why.
    pub refused: Vec<(String, Shadow)>,
    /// What is called, a line for each.
    pub calls: Vec<String>,
    /// How long it took to be there.
    pub started: Duration,
    /// How long a search took, and how many characters it found.
    pub searched: (Duration, usize),
}

impl Server {
    pub(crate) fn new(provider: Provider, call: Duration) -> Result<Server, Fault> {
        match &provider.place {
            Place::Http { url, key } => Ok(Server::Http(Http::new(url, key.clone(), call)?)),
            Place::Program { .. } | Place::Mcp { .. } => Ok(Server::Mcp(Box::new(Mcp::new(provider, call)))),
        }
    }

    pub(crate) async fn search(&self, talk: &str, question: &str) -> Result<String, Fault> {
        match self {
            Server::Mcp(mcp) => mcp.search(talk, question).await,
            Server::Http(http) => http.search(talk, question).await,
        }
    }

    pub(crate) async fn sync(&self, talk: &str, user: &str, assistant: &str) -> Result<(), Fault> {
        match self {
            Server::Mcp(mcp) => mcp.write(talk, &format!("user: {user}\nassistant: {assistant}")).await,
            Server::Http(http) => http.sync(talk, user, assistant).await,
        }
    }

    pub(crate) async fn offer(&self, talk: &str, texts: &[String]) -> Result<(), Fault> {
        match self {
            Server::Mcp(mcp) => {
                for text in texts {
                    mcp.write(talk, text).await?;
                }
                Ok(())
            }
            Server::Http(http) => http.offer(talk, texts).await,
        }
    }

    pub(crate) async fn end(&self, talk: &str) -> Result<(), Fault> {
        match self {
            // There is no tool for that: what was written is there.
            Server::Mcp(_) => Ok(()),
            Server::Http(http) => http.end(talk).await,
        }
    }

    pub(crate) async fn close(&self) {
        if let Server::Mcp(mcp) = self {
            mcp.close().await;
        }
    }

    /// Makes the connection, where there is one.
    pub(crate) async fn warm_up(&self) -> Result<(), Fault> {
        match self {
            Server::Mcp(mcp) => mcp.open().await?.chosen.clone().map(drop),
            Server::Http(_) => Ok(()),
        }
    }

    /// Ends it at once.
    pub(crate) fn kill(&self) {
        if let Server::Mcp(mcp) = self {
            mcp.kill();
        }
    }

    /// Tries it.
    pub(crate) async fn check(&self, question: &str) -> Result<Checked, Fault> {
        let began = Instant::now();
        let mut checked = match self {
            Server::Mcp(mcp) => {
                let open = mcp.open().await?;
                let chosen = open.chosen.clone()?;
                let names = |tool: &crate::choose::Tool| {
                    (tool.name.clone(), tool.arguments.iter().map(|argument| argument.name.clone()).collect())
                };
                Checked {
                    name: open.name.clone(),
                    tools: open.tools.iter().map(names).collect(),
                    refused: open.refused.clone(),
                    calls: chosen.shown(),
                    started: began.elapsed(),
                    searched: (Duration::ZERO, 0),
                }
            }
            Server::Http(_) => Checked {
                name: "HTTP".to_owned(),
                tools: Vec::new(),
                refused: Vec::new(),
                calls: vec!["POST /prefetch, /sync, /offer and /end".to_owned()],
                started: began.elapsed(),
                searched: (Duration::ZERO, 0),
            },
        };
        let began = Instant::now();
        let found = self.search("fanfold check", question).await?;
        checked.searched = (began.elapsed(), found.chars().count());
        Ok(checked)
    }
}
