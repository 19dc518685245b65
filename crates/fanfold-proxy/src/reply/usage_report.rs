//! Reports what an answer cost to the engine and the meter.

use std::sync::Arc;

use fanfold_core::{ProviderUsage, Tokens};
use fanfold_store::SessionId;
use fanfold_wire::reply;

use crate::meter::{Exit, RequestMeter, ResponseUsage};
use crate::prepare::prepared_body::PreparedBody;
use crate::shared::Shared;

/// Reports usage. If it is dropped before the end, the client has closed the connection.
pub(crate) struct UsageReport {
    shared: Arc<Shared>,
    /// `None` once the answer has ended.
    meter: Option<RequestMeter>,
    /// The session, and the local count of what was sent; `None` once the engine has the usage.
    counted: Option<(SessionId, Tokens)>,
}

impl UsageReport {
    pub(super) fn new(shared: Arc<Shared>, meter: RequestMeter, prepared: &PreparedBody) -> UsageReport {
        let counted = prepared.session.clone().zip(prepared.counted.map(|counted| counted.tokens));
        UsageReport { shared, meter: Some(meter), counted }
    }

    /// The model recalled an original in a call with this usage.
    pub(super) fn count_recall(&mut self, usage: Option<reply::Usage>) {
        if let Some(meter) = &mut self.meter {
            meter.count_recall(usage.map(reported));
        }
        if let Some(usage) = usage {
            self.report_to_engine(usage);
        }
    }

    /// The answer has ended.
    pub(super) fn end(&mut self, usage: Option<reply::Usage>, exit: Exit) {
        let Some(mut meter) = self.meter.take() else { return };
        if let Some(usage) = usage {
            meter.add_usage(reported(usage));
            self.report_to_engine(usage);
        }
        meter.end(exit);
    }

    /// Reports the usage of the first call, which the engine compares with its own count.
    fn report_to_engine(&mut self, usage: reply::Usage) {
        let Some((session, counted)) = self.counted.take() else { return };
        let usage = ProviderUsage {
            input: Tokens(usage.input),
            cached: Tokens(usage.cache_read),
            written: Tokens(usage.cache_written),
            output: Tokens(usage.output),
        };
        let engine = Arc::clone(&self.shared.engine);
        self.shared.tasks.spawn_blocking(move || {
            if let Err(error) = engine.get().record_usage(&session, counted, &usage) {
                tracing::debug!(%session, %error, "the usage of a request could not be recorded");
            }
        });
    }
}

fn reported(usage: reply::Usage) -> ResponseUsage {
    let written = (usage.cache_written > 0).then_some(usage.cache_written);
    ResponseUsage { input: usage.input, read: usage.cache_read, written, output: usage.output }
}
