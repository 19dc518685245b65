//! Listening, and ending in good order: nobody new is let in, streams go on to their end, and then that is that.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::connections::{Door, Seat};
use crate::admission::write_timeout::Watched;
use crate::config::Config;
use crate::local::local_routes;
use crate::pipeline::{Shared, exchange};
use crate::watched_body::Passing;

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
    /// It would send requests to itself.
    #[error("{0} is where it listens itself: requests would go round for ever")]
    Itself(String),
    /// What was given as certificates of authorities are none.
    #[error("there is no certificate among the authorities that were given")]
    Authorities,
    /// The HTTP client could not be made.
    #[error("requests can't be sent from here: {}", cause(.0))]
    Sender(#[from] reqwest::Error),
}

/// What is at the bottom of an error: the rest says little.
fn cause(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
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
    if let Some(upstream) = config.upstreams.all().find(|upstream| upstream.is_at(address)) {
        return Err(ServeError::Itself(upstream.address().to_owned()));
    }
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
        local_routes::is_ready(&self.shared).await
    }

    /// How many connections there are.
    pub fn n_connections(&self) -> usize {
        self.connections.len()
    }

    fn accepting(&self, listener: TcpListener) -> impl Future<Output = ()> + use<> {
        let (shared, connections) = (Arc::clone(&self.shared), self.connections.clone());
        let (closing, dropping) = (self.closing.clone(), self.dropping.clone());
        async move {
            let door = Door::new(shared.limits.connections);
            loop {
                let accepted = tokio::select! {
                    accepted = listener.accept() => accepted,
                    () = closing.cancelled() => return,
                };
                let Ok((stream, peer)) = accepted else {
                    door.make_room();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                let Some(seat) = door.let_in(peer.ip().to_canonical()).map(Arc::new) else {
                    tracing::debug!("a connection is closed at once: all places are taken");
                    continue;
                };
                let connection = serve_one(stream, Arc::clone(&seat), Arc::clone(&shared), closing.clone());
                let dropping = dropping.clone();
                connections.spawn(async move {
                    tokio::select! {
                        () = connection => {}
                        () = seat.goes() => tracing::debug!("a connection goes to make room for another"),
                        () = dropping.cancelled() => {}
                    }
                });
            }
        }
    }
}

/// Serves one connection to its end.
async fn serve_one(stream: TcpStream, seat: Arc<Seat>, shared: Arc<Shared>, closing: CancellationToken) {
    // Small pieces of a stream leave at once.
    let _ = stream.set_nodelay(true);
    let idle = shared.limits.client_idle;
    let greeting = tokio::time::sleep(shared.limits.greeting.min(idle));
    let is_greeted = Arc::new(AtomicBool::new(false));
    let greeted = Arc::clone(&is_greeted);
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
        greeted.store(true, Ordering::Relaxed);
        let (shared, visit) = (Arc::clone(&shared), Arc::new(seat.asks()));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Arc::clone(&visit));
            let response = exchange(shared, request).await;
            visit.is_heard();
            Ok::<_, Infallible>(response.map(|body| Passing::new(body, visit)))
        }
    });
    let connection = builder.serve_connection(TokioIo::new(Watched::new(stream, idle)), service);
    tokio::pin!(connection);
    // Who has a request under way, or had one, looks after its silences in other ways.
    let late = async {
        greeting.await;
        if is_greeted.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = late => {
            tracing::debug!("a connection is closed: its first request did not come");
            return;
        }
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}
