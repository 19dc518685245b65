//! Listening, and ending in good order: nobody new is let in, streams go on to their end, and then that is that.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::exchange::{Shared, exchange};
use crate::own;
use crate::stall::Watched;

/// After a failed accept, for lack of files say, others are let go on first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Why a proxy did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is not to be had.
    #[error("{address} can't be listened on: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// Others could reach it, and it has no token.
    #[error("{0} can be reached from other machines, and there is no token")]
    Open(SocketAddr),
    /// What was given as certificates of authorities are none.
    #[error("there is no certificate among the authorities that were given")]
    Authorities,
    /// The HTTP client could not be made.
    #[error("requests can't be sent from here: {0}")]
    Sender(#[from] reqwest::Error),
}

/// A proxy that runs.
pub struct Running {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Told when nobody new is let in.
    closing: CancellationToken,
    /// Told when those who are still there are dropped.
    dropping: CancellationToken,
    connections: TaskTracker,
}

/// Starts a proxy.
pub async fn serve(config: Config) -> Result<Running, ServeError> {
    if !config.listen.ip().is_loopback() && config.token.is_none() {
        return Err(ServeError::Open(config.listen));
    }
    // Whoever was first has chosen; all that matters is that there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed = |error| ServeError::Listen { address: config.listen, error };
    let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let shared = Arc::new(Shared::new(&config)?);
    let running = Running {
        address,
        shared,
        closing: CancellationToken::new(),
        dropping: CancellationToken::new(),
        connections: TaskTracker::new(),
    };
    tokio::spawn(running.accepting(listener));
    Ok(running)
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets nobody new in, waits for what is under way up to its limit, and ends. Says whether everybody was done.
    pub async fn stop(&self) -> bool {
        self.closing.cancel();
        self.connections.close();
        self.shared.tasks.close();
        let all = async {
            self.connections.wait().await;
            self.shared.tasks.wait().await;
        };
        let is_done = tokio::time::timeout(self.shared.limits.farewell, all).await.is_ok();
        self.dropping.cancel();
        is_done
    }

    /// Whether sessions can be kept now, or why not. Requests go through either way.
    pub async fn is_ready(&self) -> Result<(), String> {
        own::is_ready(&self.shared).await
    }

    /// How many connections there are.
    pub fn n_connections(&self) -> usize {
        self.connections.len()
    }

    fn accepting(&self, listener: TcpListener) -> impl Future<Output = ()> + use<> {
        let (shared, connections) = (Arc::clone(&self.shared), self.connections.clone());
        let (closing, dropping) = (self.closing.clone(), self.dropping.clone());
        async move {
            let places = Arc::new(Semaphore::new(shared.limits.connections));
            loop {
                let next = async {
                    let place = Arc::clone(&places).acquire_owned().await.ok()?;
                    Some((listener.accept().await, place))
                };
                let (accepted, place) = tokio::select! {
                    next = next => match next {
                        Some(next) => next,
                        None => return,
                    },
                    () = closing.cancelled() => return,
                };
                let Ok((stream, _)) = accepted else {
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let connection = serve_one(stream, Arc::clone(&shared), closing.clone());
                let dropping = dropping.clone();
                connections.spawn(async move {
                    tokio::select! {
                        () = connection => {}
                        () = dropping.cancelled() => {}
                    }
                    drop(place);
                });
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve_one(stream: TcpStream, shared: Arc<Shared>, closing: CancellationToken) {
    // Small pieces of a stream leave at once.
    let _ = stream.set_nodelay(true);
    let idle = shared.limits.client_idle;
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30))
        .adaptive_window(true)
        .max_header_list_size(256 << 10);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(exchange(shared, request.map(Body::new)).await) }
    });
    let connection = builder.serve_connection(TokioIo::new(Watched::new(stream, idle)), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
