//! The slot of a request: one per connection within the limit.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use fanfold_http::ActiveRequest;
use http::StatusCode;

use crate::error_reply::ErrorReply;
use crate::receive::read_body::ReadBody;

/// The right of a request to be sent upstream.
pub(crate) struct RequestSlot {
    /// `None` in a server that does not limit connections.
    pub(crate) request: Option<Arc<ActiveRequest>>,
    pub(crate) timeout: Duration,
    /// Number of slots, for the error message.
    pub(crate) n_slots: usize,
}

impl RequestSlot {
    /// Waits for a slot for a body that is streamed upstream.
    pub(crate) fn wait_for_stream<'s>(
        &'s self,
        body: &Body,
    ) -> impl Future<Output = Result<(), ErrorReply>> + use<'s> {
        self.wait(hyper::body::Body::is_end_stream(body))
    }

    /// Waits for a slot for a body that was read.
    pub(crate) fn wait_for_body<'s>(
        &'s self,
        body: &ReadBody,
    ) -> impl Future<Output = Result<(), ErrorReply>> + use<'s> {
        self.wait(matches!(body, ReadBody::Whole(_)))
    }

    async fn wait(&self, is_received: bool) -> Result<(), ErrorReply> {
        let Some(request) = &self.request else { return Ok(()) };
        if is_received {
            request.mark_received();
        }
        if request.take_slot(self.timeout).await {
            return Ok(());
        }
        let message = format!("all {} slots are taken", self.n_slots);
        let error = ErrorReply::new(StatusCode::SERVICE_UNAVAILABLE, message, "try again in a moment");
        Err(ErrorReply { is_temporary: true, ..error })
    }
}
