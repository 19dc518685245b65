//! An answer on its way to the client: each piece goes on as it comes, and is seen in passing.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Sees what passes.
pub(crate) trait Watch: Send + 'static {
    /// A piece of the answer.
    fn saw(&mut self, bytes: &[u8]);

    /// The answer has ended.
    fn ended(&mut self, end: End);
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It is complete.
    Complete,
    /// Upstream broke off.
    BrokenOff,
    /// The client went away.
    ClientGone,
}

/// A body that is watched.
pub(crate) struct Passing<B, W: Watch> {
    body: B,
    /// None once the end was told.
    watch: Option<W>,
}

impl<B, W: Watch> Passing<B, W> {
    pub(crate) fn new(body: B, watch: W) -> Passing<B, W> {
        Passing { body, watch: Some(watch) }
    }

    fn end(&mut self, end: End) {
        if let Some(mut watch) = self.watch.take() {
            watch.ended(end);
        }
    }
}

impl<B, W> Body for Passing<B, W>
where
    B: Body<Data = Bytes> + Unpin,
    W: Watch + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(data), Some(watch)) = (frame.data_ref(), &mut this.watch) {
                    watch.saw(data);
                }
                // A body of known length is not asked once more when all of it is there.
                if this.body.is_end_stream() {
                    this.end(End::Complete);
                }
            }
            Some(Err(_)) => this.end(End::BrokenOff),
            None => this.end(End::Complete),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B, W: Watch> Drop for Passing<B, W> {
    fn drop(&mut self) {
        self.end(End::ClientGone);
    }
}
