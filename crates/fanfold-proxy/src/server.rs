//! Start and shutdown of a proxy: at the end no connection is accepted, and running streams get time to finish.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use fanfold_http::{Server, ServerLimits};
use fanfold_provider::install_tls;
use fanfold_store::Outage;

use crate::config::Config;
use crate::local;
use crate::pipeline;
use crate::reconnecting_engine::ReconnectingEngine;
use crate::send::http_clients::root_cause;
use crate::shared::Shared;

/// Why a proxy did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be bound.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// Other machines could use it without a token.
    #[error("{0} can be reached from other machines, but no token is set")]
    MissingToken(SocketAddr),
    /// The upstream is the proxy itself.
    #[error("the upstream {0} is the proxy's own address: requests would loop")]
    OwnAddress(String),
    /// The CA file has no certificate.
    #[error("the CA file contains no certificate")]
    Authorities,
    /// The HTTP client could not be created.
    #[error("cannot create an HTTP client: {}", root_cause(.0))]
    HttpClient(#[from] reqwest::Error),
}

/// A running proxy.
pub struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: Server,
}

/// Starts a proxy.
pub async fn serve(config: Config) -> Result<Running, ServeError> {
    if !config.listen.ip().is_loopback() && config.token.is_none() {
        return Err(ServeError::MissingToken(config.listen));
    }
    install_tls();
    let failed = |error| ServeError::Listen { address: config.listen, error };
    let listener = fanfold_http::bind(config.listen).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    if let Some(upstream) = config.upstreams.all().find(|upstream| upstream.is_at(address)) {
        return Err(ServeError::OwnAddress(upstream.address().to_owned()));
    }
    let shared = Arc::new(Shared::new(&config)?);
    let limits = ServerLimits {
        connections: config.limits.connections,
        first_request: config.limits.first_request,
        client_idle: config.limits.client_idle,
    };
    let for_requests = Arc::clone(&shared);
    let handler = move |request| pipeline::handle(Arc::clone(&for_requests), request);
    let server = Server::start(listener, limits, handler);
    tokio::spawn(ReconnectingEngine::keep_storing(&shared.engine));
    Ok(Running { address, shared, server })
}

impl Running {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, waits for open connections up to a limit, and drops the rest. Returns whether all had finished.
    pub async fn stop(&self) -> bool {
        self.server.close();
        self.shared.tasks.close();
        let all = async {
            self.server.wait().await;
            self.shared.tasks.wait().await;
        };
        let is_done = tokio::time::timeout(self.shared.limits.shutdown, all).await.is_ok();
        self.server.drop_connections();
        let engine = Arc::clone(&self.shared.engine);
        let stored = tokio::task::spawn_blocking(move || engine.store_waiting());
        let _ = tokio::time::timeout(self.shared.limits.shutdown, stored).await;
        is_done
    }

    /// Why the store cannot be used, and how much waits in memory. What waits is lost with this process.
    pub fn outage(&self) -> Option<Outage> {
        self.shared.engine.outage()
    }

    /// Returns whether the store works. Requests are forwarded either way.
    pub async fn is_ready(&self) -> Result<(), String> {
        local::is_ready(&self.shared).await
    }

    /// The number of open connections.
    pub fn n_connections(&self) -> usize {
        self.server.n_connections()
    }
}
