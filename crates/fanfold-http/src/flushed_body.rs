//! A body whose error waits until the bytes before it are sent.
//!
//! A server that gets an error right after the headers or some bytes closes the connection without sending them, and
//! the client sees an empty reply.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// The time for the server to send the bytes before the error.
const ERROR_DELAY: Duration = Duration::from_millis(20);

pub(crate) struct FlushedBody<B: Body> {
    body: B,
    /// An error on hold.
    failed: Option<(Pin<Box<Sleep>>, B::Error)>,
}

impl<B: Body> FlushedBody<B> {
    pub(crate) fn new(body: B) -> FlushedBody<B> {
        FlushedBody { body, failed: None }
    }
}

impl<B> Body for FlushedBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if this.failed.is_none() {
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Err(error)) => this.failed = Some((Box::pin(sleep(ERROR_DELAY)), error)),
                frame => return Poll::Ready(frame),
            }
        }
        if let Some((delay, _)) = &mut this.failed {
            ready!(delay.as_mut().poll(cx));
        }
        Poll::Ready(this.failed.take().map(|(_, error)| Err(error)))
    }

    fn is_end_stream(&self) -> bool {
        self.failed.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
