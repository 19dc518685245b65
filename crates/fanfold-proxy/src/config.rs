//! Settings of a proxy.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use fanfold_engine::{Mode, SessionEngine, SummaryModels, Terms};
use fanfold_http::{Token, WebAccess};
use fanfold_store::StoreError;
use fanfold_wire::Format;

use crate::meter::Meter;
use crate::prepare::recall_offer::Recall;
use crate::receive::turn_memory::ProxyMemory;
use crate::receive::upstream::Upstreams;

/// The settings of a proxy.
#[derive(Clone)]
pub struct Config {
    /// Address to listen on; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where requests are sent.
    pub upstreams: Upstreams,
    /// Opens the store and chooses the fold settings.
    pub host: Arc<dyn Host>,
    /// True if requests are folded or only observed.
    pub mode: Mode,
    /// How models recall folded originals.
    pub recall: Recall,
    /// Memory across sessions.
    pub memory: Option<ProxyMemory>,
    /// Counts requests.
    pub meter: Arc<Meter>,
    /// Serves `/fanfold/mcp`.
    pub mcp: Option<Router>,
    /// Additional certificate authorities for upstreams, as PEM.
    pub ca: Option<Vec<u8>>,
    /// Required from clients; mandatory if the address can be reached from other machines.
    pub token: Option<Token>,
    /// The host names and web pages that may use it without a token.
    pub web_access: WebAccess,
    /// Timeouts and size limits.
    pub limits: Limits,
}

/// The program that embeds the proxy: it opens stores and chooses fold settings.
pub trait Host: Send + Sync {
    /// Opens the store, and creates it if it does not exist.
    fn open(&self) -> Result<SessionEngine, StoreError>;

    /// The file of the store, if it is a file. It is reopened if it was deleted or replaced.
    fn file(&self) -> Option<PathBuf>;

    /// The fold settings for a model.
    fn terms(&self, model: Option<&str>, format: Format) -> Result<Terms, String>;

    /// Returns whether the window of a model is known. If it is not, the model server is probed for it.
    fn knows_window(&self, _model: &str) -> bool {
        true
    }

    /// Returns whether folded steps are to be summarised by a model.
    fn wants_summaries(&self) -> bool {
        false
    }

    /// The models that write summaries. This may block, because a server may be queried for its window.
    fn ways(&self) -> SummaryModels {
        SummaryModels::default()
    }
}

/// Timeouts and size limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time for all work before the call to the provider.
    pub deadline: Duration,
    /// The largest body, in bytes, that is read; larger ones are streamed unchanged.
    pub body: usize,
    /// The most messages of a body that is folded.
    pub messages: usize,
    /// Connections and responses in progress. At the limit, inactive connections are closed first.
    pub connections: usize,
    /// Time until the headers of the first request of a connection.
    pub first_request: Duration,
    /// Bytes of large bodies held at once; further ones wait, and are then streamed unchanged.
    pub buffered_bytes: usize,
    /// Bodies folded at once; further ones wait within their deadline.
    pub concurrent_folds: usize,
    /// Timeout for silent clients: between requests, in headers or body, or while they do not read the response.
    pub client_idle: Duration,
    /// Time to connect to the provider.
    pub connect: Duration,
    /// Timeout for a silent provider; a stream that sends data has no limit.
    pub upstream_idle: Duration,
    /// Time for running streams at shutdown.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            deadline: Duration::from_secs(2),
            body: 64 << 20,
            messages: 50_000,
            connections: 1024,
            first_request: Duration::from_secs(10),
            buffered_bytes: 256 << 20,
            concurrent_folds: 32,
            client_idle: Duration::from_secs(120),
            connect: Duration::from_secs(10),
            upstream_idle: Duration::from_secs(600),
            shutdown: Duration::from_secs(30),
        }
    }
}
