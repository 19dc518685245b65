//! Connections that stand still: a client that sends nothing at all, or does not read its answer, loses its place.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A connection that is given up when it stands still for too long.
pub(crate) struct Watched<T> {
    io: T,
    idle: Duration,
    /// Runs until the first bytes have come: only then a protocol looks after its own silences.
    greeting: Option<Pin<Box<Sleep>>>,
    /// Runs while what was written is not taken.
    writing: Option<Pin<Box<Sleep>>>,
}

impl<T> Watched<T> {
    pub(crate) fn new(io: T, idle: Duration) -> Watched<T> {
        Watched { io, idle, greeting: Some(Box::pin(sleep(idle))), writing: None }
    }

    /// Looks at the time while a write waits.
    fn on_write<R>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            self.writing = None;
            return written;
        }
        let idle = self.idle;
        let timer = self.writing.get_or_insert_with(|| Box::pin(sleep(idle)));
        if timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")));
        }
        Poll::Pending
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.io).poll_read(cx, buffer);
        let Some(timer) = &mut this.greeting else { return read };
        if read.is_ready() {
            this.greeting = None;
            return read;
        }
        if timer.as_mut().poll(cx).is_ready() {
            timer.as_mut().reset(Instant::now() + this.idle);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client says nothing")));
        }
        Poll::Pending
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, bytes);
        this.on_write(cx, written)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.io).poll_flush(cx);
        this.on_write(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.io).poll_shutdown(cx);
        this.on_write(cx, shut)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, slices);
        this.on_write(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }
}
