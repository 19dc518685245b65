//! Accepts connections within the limit, and serves HTTP/1.1 and HTTP/2 on each.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::client_io::ClientIo;
use crate::connections::{ConnectionGuard, ConnectionLimit};
use crate::flushed_body::FlushedBody;
use crate::observed_body::ObservedBody;

/// Pause after a failed accept, so that file descriptors can be released.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The largest header list of an HTTP/2 request.
const MAX_HEADER_BYTES: u32 = 256 << 10;
/// How many bytes of a response an HTTP/2 stream buffers for a client that does not read.
const MAX_STREAM_BYTES: usize = 64 << 10;
/// How many bytes an HTTP/1.1 connection buffers: of a response for a client that does not read, and of the headers of
/// a request.
const MAX_BUFFERED_BYTES: usize = 128 << 10;
/// How many bytes of responses the system buffers for a connection.
const SOCKET_BUFFER_BYTES: u32 = 128 << 10;
/// How many connections wait to be accepted.
const BACKLOG: u32 = 1024;
const HTTP2_KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Limits of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections and responses in progress. At the limit, inactive connections are closed first.
    pub connections: usize,
    /// Time until the headers of the first request of a connection.
    pub first_request: Duration,
    /// Timeout for silent clients: between requests, in headers, or while they do not read the response.
    pub client_idle: Duration,
}

/// Listens on an address. The system buffers little for each client, because what is buffered there was read from
/// elsewhere too early.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As of `TcpListener::bind`: a restart does not wait for old connections. Windows would share the port.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A running server.
pub struct Server {
    /// Cancelled when no more connections are accepted.
    closing: CancellationToken,
    /// Cancelled when open connections are dropped.
    dropping: CancellationToken,
    connections: TaskTracker,
}

impl Server {
    /// Starts a server. Each request has its [`crate::ActiveRequest`] among its extensions.
    pub fn start<H, F>(listener: TcpListener, limits: ServerLimits, handler: H) -> Server
    where
        H: Fn(Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let server = Server {
            closing: CancellationToken::new(),
            dropping: CancellationToken::new(),
            connections: TaskTracker::new(),
        };
        tokio::spawn(server.accept_loop(listener, limits, handler));
        server
    }

    /// Stops accepting connections. Open ones end after their current requests.
    pub fn close(&self) {
        self.closing.cancel();
        self.connections.close();
    }

    /// Waits until all connections have ended, after [`Server::close`].
    pub async fn wait(&self) {
        self.connections.wait().await;
    }

    /// Drops open connections.
    pub fn drop_connections(&self) {
        self.dropping.cancel();
    }

    /// The number of open connections.
    pub fn n_connections(&self) -> usize {
        self.connections.len()
    }

    fn accept_loop<H, F>(
        &self,
        listener: TcpListener,
        limits: ServerLimits,
        handler: H,
    ) -> impl Future<Output = ()> + use<H, F>
    where
        H: Fn(Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send + 'static,
    {
        let connections = self.connections.clone();
        let (closing, dropping) = (self.closing.clone(), self.dropping.clone());
        async move {
            let limit = ConnectionLimit::new(limits.connections);
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
                    serve_connection(stream, Arc::clone(&guard), limits, handler.clone(), closing.clone());
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

async fn serve_connection<H, F>(
    stream: TcpStream,
    guard: Arc<ConnectionGuard>,
    limits: ServerLimits,
    handler: H,
    closing: CancellationToken,
) where
    H: Fn(Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response> + Send + 'static,
{
    // Small events of a stream are sent at once.
    let _ = stream.set_nodelay(true);
    let idle = limits.client_idle;
    let first_request = tokio::time::sleep(limits.first_request.min(idle));
    let has_requested = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&has_requested);
    let service = service_fn(move |request: http::Request<Incoming>| {
        requested.store(true, Ordering::Relaxed);
        let (handler, active) = (handler.clone(), Arc::new(guard.start_request()));
        async move {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(Arc::clone(&active));
            let response = handler(request).await;
            active.mark_received();
            Ok::<_, Infallible>(response.map(|body| FlushedBody::new(ObservedBody::new(body, active))))
        }
    });
    let builder = http_builder(idle);
    let connection = builder.serve_connection(TokioIo::new(ClientIo::new(stream, idle)), service);
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
    builder.http1().timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(MAX_BUFFERED_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(HTTP2_KEEP_ALIVE)
        .keep_alive_timeout(HTTP2_KEEP_ALIVE)
        .adaptive_window(true)
        .max_send_buf_size(MAX_STREAM_BYTES)
        .max_header_list_size(MAX_HEADER_BYTES);
    builder
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::atomic::AtomicUsize;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use hyper::body::Frame;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const CHUNK: usize = 16 << 10;

    /// A body without end, which counts the bytes that were taken from it.
    struct Endless(Arc<AtomicUsize>);

    impl hyper::body::Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.fetch_add(CHUNK, Ordering::Relaxed);
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; CHUNK])))))
        }
    }

    /// A body whose first frame is an error.
    struct Failing;

    impl hyper::body::Body for Failing {
        type Data = Bytes;
        type Error = io::Error;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
            Poll::Ready(Some(Err(io::Error::other("broken"))))
        }
    }

    /// A client that has sent a request to a server with one response.
    async fn request(response: impl Fn() -> Response + Clone + Send + Sync + 'static) -> TcpStream {
        let listener = bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let idle = Duration::from_secs(20);
        let limits = ServerLimits { connections: 4, first_request: idle, client_idle: idle };
        Server::start(listener, limits, move |_| {
            let response = response.clone();
            async move { response() }
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        client
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_client_that_does_not_read_stops_its_response() {
        let n_taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&n_taken);
        let _client = request(move || Response::new(Body::new(Endless(Arc::clone(&counted))))).await;
        let mut last = 0;
        while last == 0 || last != n_taken.load(Ordering::Relaxed) {
            last = n_taken.load(Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        assert!(last < 1 << 20, "{last} bytes were taken from the body");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn headers_are_sent_before_the_error_of_a_body() {
        let mut client = request(|| Response::new(Body::new(Failing))).await;
        let mut answer = Vec::new();
        let _ = client.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{}", String::from_utf8_lossy(&answer));
    }
}
