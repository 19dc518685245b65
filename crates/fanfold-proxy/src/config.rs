//! What a proxy is told, once, before it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use fanfold_engine::{Engine, Mode, Terms, Ways};
use fanfold_store::StoreError;
use fanfold_wire::Format;

use crate::admission::token::Token;
use crate::meter::Meter;
use crate::prepare::memory::Remember;
use crate::prepare::recall_offer::Recall;
use crate::send::upstream::Upstreams;

/// Everything that a proxy is told.
#[derive(Clone)]
pub struct Config {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where requests go.
    pub upstreams: Upstreams,
    /// Where sessions are kept, and what they are folded by.
    pub host: Arc<dyn Host>,
    /// Whether anything is changed.
    pub mode: Mode,
    /// How models open folds.
    pub recall: Recall,
    /// What is remembered from one session to the next, if anything is.
    pub memory: Option<Remember>,
    /// Counts what passes.
    pub meter: Arc<Meter>,
    /// Answers below `/fanfold/mcp`, if anything does.
    pub mcp: Option<Router>,
    /// Certificates of authorities that upstreams are trusted by, beside those of this machine, as PEM.
    pub ca: Option<Vec<u8>>,
    /// What a client must know; needed wherever others than this machine can reach us.
    pub token: Option<Token>,
    /// How much of everything.
    pub limits: Limits,
}

/// Opens stores and chooses terms: what differs between the programs that have a proxy in them.
pub trait Host: Send + Sync {
    /// Opens the store, which is made if it is not there.
    fn open(&self) -> Result<Engine, StoreError>;

    /// The file of the store, if it is a file: one that is gone or another is opened anew.
    fn file(&self) -> Option<PathBuf>;

    /// What a conversation is folded by.
    fn terms(&self, model: Option<&str>, format: Format) -> Result<Terms, String>;

    /// Whether the window in those terms is known. Where it is only assumed, the server is asked for it.
    fn knows_window(&self, _model: &str) -> bool {
        true
    }

    /// Whether summaries are to be written of what is folded.
    fn wants_summaries(&self) -> bool {
        false
    }

    /// Who writes them. A server may be asked how much it reads, so this may take a while.
    fn ways(&self) -> Ways {
        Ways::default()
    }
}

/// How much of everything, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// What our own work before the upstream call may take.
    pub deadline: Duration,
    /// The largest body that is looked at; a larger one goes through as it comes.
    pub body: usize,
    /// Connections at once, and answers under way. When they are all taken, those that do nothing go first.
    pub connections: usize,
    /// How long the first request of a connection may take to be named.
    pub greeting: Duration,
    /// Bytes of large bodies that are held at once; more of them wait, and then go through as they come.
    pub held: usize,
    /// Bodies that are worked on at once; more of them wait, within their deadline.
    pub folding: usize,
    /// How long a client may be silent: between requests, in its headers, in its body, or not reading its answer.
    pub client_idle: Duration,
    /// How long a connection upstream may take to be made.
    pub connect: Duration,
    /// How long upstream may be silent; a stream that goes on has no limit.
    pub upstream_idle: Duration,
    /// How long streams are waited for at the end.
    pub farewell: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            deadline: Duration::from_secs(2),
            body: 64 << 20,
            connections: 1024,
            greeting: Duration::from_secs(10),
            held: 256 << 20,
            folding: 32,
            client_idle: Duration::from_secs(120),
            connect: Duration::from_secs(10),
            upstream_idle: Duration::from_secs(600),
            farewell: Duration::from_secs(30),
        }
    }
}
