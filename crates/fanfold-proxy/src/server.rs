//! Listener and shutdown: at the end no connection is accepted, and running streams get time to finish.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use fanfold_provider::install_tls;
use fanfold_store::Outage;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::connections::{ConnectionGuard, ConnectionLimit};
use crate::admission::write_timeout::WriteTimeout;
use crate::config::Config;
use crate::local;
use crate::observed_body::ObservedBody;
use crate::pipeline;
use crate::reconnecting_engine::ReconnectingEngine;
use crate::send::http_clients::root_cause;
use crate::shared::Shared;

/// Pause after a failed accept, so that file descriptors can be released.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The largest header list of an HTTP/2 request.
const MAX_HEADER_BYTES: u32 = 256 << 10;
const HTTP2_KEEP_ALIVE: Duration = Duration::from_secs(30);

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
    /// Cancelled when no more connections are accepted.
    closing: CancellationToken,
    /// Cancelled when open connections are dropped.
    dropping: CancellationToken,
    connections: TaskTracker,
}

/// Starts a proxy.
pub async fn serve(config: Config) -> Result<Running, ServeError> {
    if !config.listen.ip().is_loopback() && config.token.is_none() {
        return Err(ServeError::MissingToken(config.listen));
    }
    install_tls();
    let failed = |error| ServeError::Listen { address: config.listen, error };
    let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    if let Some(upstream) = config.upstreams.all().find(|upstream| upstream.is_at(address)) {
        return Err(ServeError::OwnAddress(upstream.address().to_owned()));
    }
    let shared = Arc::new(Shared::new(&config)?);
    let running = Running {
        address,
        shared,
        closing: CancellationToken::new(),
        dropping: CancellationToken::new(),
        connections: TaskTracker::new(),
    };
    tokio::spawn(running.accept_loop(listener));
    tokio::spawn(ReconnectingEngine::keep_storing(&running.shared.engine));
    Ok(running)
}

impl Running {
    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, waits for open connections up to a limit, and drops the rest. Returns whether all had finished.
    pub async fn stop(&self) -> bool {
        self.closing.cancel();
        self.connections.close();
        self.shared.tasks.close();
        let all = async {
            self.connections.wait().await;
            self.shared.tasks.wait().await;
        };
        let is_done = tokio::time::timeout(self.shared.limits.shutdown, all).await.is_ok();
        self.dropping.cancel();
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
        self.connections.len()
    }

    fn accept_loop(&self, listener: TcpListener) -> impl Future<Output = ()> + use<> {
        let (shared, connections) = (Arc::clone(&self.shared), self.connections.clone());
        let (closing, dropping) = (self.closing.clone(), self.dropping.clone());
        async move {
            let limit = ConnectionLimit::new(shared.limits.connections);
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = closing.cancelled() => return,
                };
                let Ok((stream, peer)) = accepted else {
                    limit.make_room();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let Some(guard) = limit.accept(peer.ip().to_canonical()).map(Arc::new) else {
                    tracing::debug!("connection closed at once: the connection limit is reached");
                    continue;
                };
                let connection =
                    serve_connection(stream, Arc::clone(&guard), Arc::clone(&shared), closing.clone());
                let dropping = dropping.clone();
                connections.spawn(async move {
                    tokio::select! {
                        () = connection => {}
                        () = guard.evicted() => tracing::debug!("connection closed to make room for another"),
                        () = dropping.cancelled() => {}
                    }
                });
            }
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    guard: Arc<ConnectionGuard>,
    shared: Arc<Shared>,
    closing: CancellationToken,
) {
    // Small events of a stream are sent at once.
    let _ = stream.set_nodelay(true);
    let idle = shared.limits.client_idle;
    let first_request = tokio::time::sleep(shared.limits.first_request.min(idle));
    let has_requested = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&has_requested);
    let service = service_fn(move |request: http::Request<Incoming>| {
        requested.store(true, Ordering::Relaxed);
        let (shared, active) = (Arc::clone(&shared), Arc::new(guard.start_request()));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Arc::clone(&active));
            let response = pipeline::handle(shared, request).await;
            active.mark_received();
            Ok::<_, Infallible>(response.map(|body| ObservedBody::new(body, active)))
        }
    });
    let builder = http_builder(idle);
    let connection = builder.serve_connection(TokioIo::new(WriteTimeout::new(stream, idle)), service);
    tokio::pin!(connection);
    // Only the first request has this timeout; later silences have timeouts of their own.
    let first_request_timeout = async {
        first_request.await;
        if has_requested.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = first_request_timeout => {
            tracing::debug!("connection closed: no request within the timeout");
            return;
        }
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection failed");
    }
}

fn http_builder(idle: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_KEEP_ALIVE)
        .keep_alive_timeout(HTTP2_KEEP_ALIVE)
        .adaptive_window(true)
        .max_header_list_size(MAX_HEADER_BYTES);
    builder
}
