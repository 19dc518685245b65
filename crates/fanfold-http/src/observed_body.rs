//! A response body that reports its bytes and its end to an observer, without changing them.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

/// Observes a body.
pub trait BodyObserver: Send + 'static {
    /// Some bytes were read.
    fn on_bytes(&mut self, bytes: &[u8]);

    /// The body has ended, or was dropped.
    fn on_end(&mut self, end: BodyEnd);
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// The body was read to its end.
    Complete,
    /// The provider closed the connection early.
    BrokenOff,
    /// The client closed the connection.
    ClientGone,
}

/// A body that reports to an observer.
pub struct ObservedBody<B, O: BodyObserver> {
    body: B,
    /// `None` once the end was reported.
    observer: Option<O>,
}

impl<B, O: BodyObserver> ObservedBody<B, O> {
    /// A body with an observer.
    pub fn new(body: B, observer: O) -> ObservedBody<B, O> {
        ObservedBody { body, observer: Some(observer) }
    }

    fn end(&mut self, end: BodyEnd) {
        if let Some(mut observer) = self.observer.take() {
            observer.on_end(end);
        }
    }
}

impl<B, O> Body for ObservedBody<B, O>
where
    B: Body<Data = Bytes> + Unpin,
    O: BodyObserver + Unpin,
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
                if let (Some(data), Some(observer)) = (frame.data_ref(), &mut this.observer) {
                    observer.on_bytes(data);
                }
                // A body of known length is not polled again after its last byte.
                if this.body.is_end_stream() {
                    this.end(BodyEnd::Complete);
                }
            }
            Some(Err(_)) => this.end(BodyEnd::BrokenOff),
            None => this.end(BodyEnd::Complete),
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

impl<B, O: BodyObserver> Drop for ObservedBody<B, O> {
    fn drop(&mut self) {
        self.end(BodyEnd::ClientGone);
    }
}
