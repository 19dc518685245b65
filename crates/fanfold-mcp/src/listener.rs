//! A listener that limits the number of connections and closes idle ones.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep};

/// A TCP listener with a limit. Further clients wait until a connection ends.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    /// Limits the number of connections.
    permits: Arc<Semaphore>,
    idle: Duration,
}

impl BoundedListener {
    pub(crate) fn new(listener: TcpListener, max_connections: usize, idle: Duration) -> BoundedListener {
        BoundedListener { listener, permits: Arc::new(Semaphore::new(max_connections)), idle }
    }
}

impl Listener for BoundedListener {
    type Io = TimedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TimedConnection, SocketAddr) {
        loop {
            // The semaphore is never closed.
            let permit = Arc::clone(&self.permits).acquire_owned().await.ok();
            let (stream, address) = Listener::accept(&mut self.listener).await;
            // Without this, small answers wait for the client's acknowledgement of earlier packets.
            if stream.set_nodelay(true).is_ok() {
                let timer = Box::pin(sleep(self.idle));
                return (TimedConnection { stream, timer, idle: self.idle, _permit: permit }, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that times out when it is idle.
pub(crate) struct TimedConnection {
    stream: TcpStream,
    timer: Pin<Box<Sleep>>,
    idle: Duration,
    _permit: Option<OwnedSemaphorePermit>,
}

impl TimedConnection {
    /// Restarts the timer after a read or write.
    fn touch<T>(&mut self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.timer.as_mut().reset(Instant::now() + self.idle);
        }
        polled
    }
}

impl AsyncRead for TimedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if polled.is_pending() && self.timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.touch(polled)
    }
}

impl AsyncWrite for TimedConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.touch(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const IDLE: Duration = Duration::from_millis(80);

    async fn bounded(max_connections: usize) -> (BoundedListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (BoundedListener::new(listener, max_connections, IDLE), address)
    }

    #[tokio::test]
    async fn an_idle_connection_times_out() {
        let (mut listener, address) = bounded(1).await;
        let mut client = TcpStream::connect(address).await.unwrap();
        let (mut connection, _) = listener.accept().await;
        for _ in 0..3 {
            tokio::time::sleep(IDLE / 2).await;
            client.write_all(b"x").await.unwrap();
            assert_eq!(connection.read_u8().await.unwrap(), b'x', "activity keeps the connection open");
        }
        assert_eq!(connection.read_u8().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_client_beyond_the_limit_waits() {
        let (mut listener, address) = bounded(1).await;
        let _first = TcpStream::connect(address).await.unwrap();
        let _second = TcpStream::connect(address).await.unwrap();
        let (connection, _) = listener.accept().await;
        let full = tokio::time::timeout(IDLE, Listener::accept(&mut listener)).await;
        assert!(full.is_err(), "the limit is one connection");
        drop(connection);
        assert!(tokio::time::timeout(IDLE * 20, Listener::accept(&mut listener)).await.is_ok());
    }
}
