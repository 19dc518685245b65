//! Counts requests: for people at a terminal, for Prometheus, and for one log line per request.
//!
//! The proxy reports the stages of a request to its [`RequestMeter`]; the [`Meter`] adds them up. Metering cannot
//! fail and does not wait, and its memory is bounded for any number of sessions.

mod fold_snapshot; //  sizes and folds of a session after a request
mod cost; //           the cost of a request, folded and unfolded
mod status; //         all counts as JSON and as text
mod summaries; //      summaries by a model
mod pressure; //       warnings about the fill level of a session
mod export; //         counts for Prometheus, and spans for a collector
mod request; //        the metering of one request
mod redact; //         what may be logged of a request

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fanfold_core::Budget;
use fanfold_engine::{FoldedConversation, Sizes};
use fanfold_replay::PriceTable;
use fanfold_store::SessionId;

pub use crate::outcome::Exit;
pub use cost::ResponseUsage;
pub use export::exporter::{Collector, CollectorError};
pub use fold_snapshot::FoldSnapshot;
pub use redact::{shown_headers, shown_path};
pub use request::{RequestInfo, RequestMeter};
pub use status::client::{StatusClient, StatusError};
pub use status::{
    Dollars, FoldTotals, ModelStatus, SessionStatus, Status, StoreOutage, TokenTotals, Totals, dollars,
};
pub use summaries::{SummaryTotals, Writer};

use export::exporter::Exporter;
use export::prometheus::Counters;
use status::Book;

/// Counts the requests of a proxy.
pub struct Meter {
    prices: PriceTable,
    is_observing: bool,
    started: Instant,
    counters: Counters,
    exporter: Option<Exporter>,
    n_in_flight: AtomicU64,
    n_ended: AtomicU64,
    /// Guards the totals and the sessions; held for a few additions at a time.
    book: Mutex<Book>,
}

/// The histograms are compacted after this many requests, so that they stay small if they are never read.
const REQUESTS_PER_UPKEEP: u64 = 256;

impl Meter {
    /// A meter with a table of prices.
    pub fn new(prices: PriceTable) -> Meter {
        Meter {
            prices,
            is_observing: false,
            started: Instant::now(),
            counters: Counters::new(),
            exporter: None,
            n_in_flight: AtomicU64::new(0),
            n_ended: AtomicU64::new(0),
            book: Mutex::default(),
        }
    }

    /// For a proxy that changes nothing: savings are those that folding would have made.
    pub fn observing(mut self) -> Meter {
        self.is_observing = true;
        self
    }

    /// Sends spans to a collector. This must be called on a runtime.
    pub fn tracing_to(mut self, collector: Collector) -> Meter {
        self.exporter = Some(Exporter::start(collector));
        self
    }

    /// Sends all queued spans to the collector.
    pub async fn flush(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.flush().await;
        }
    }

    /// Starts the metering of a conversation request.
    pub fn start_request(self: &Arc<Meter>, request: &RequestInfo<'_>) -> RequestMeter {
        self.n_in_flight.fetch_add(1, Ordering::Relaxed);
        RequestMeter::new(Arc::clone(self), request)
    }

    /// Counts a request that is not a conversation.
    pub fn count_pass_through(&self) {
        self.counters.passed_through();
        self.book().totals.passed_through += 1;
    }

    /// Counts a recall by the model or a person, over the tool of the proxy, MCP or HTTP.
    pub fn count_recall(&self, session: Option<&SessionId>, way: &'static str) {
        self.counters.recalled(way);
        let mut book = self.book();
        book.totals.recalls += 1;
        if let Some(entry) = session.and_then(|session| book.sessions.get(session)) {
            entry.status.recalls += 1;
        }
    }

    /// Counts an event of memory, by a fixed name.
    pub fn count_memory(&self, event: &'static str) {
        self.counters.memory(event);
    }

    /// The sizes and folds of a session after a request with `n_new` new messages, for [`RequestMeter::set_session`].
    pub fn snapshot(&self, session: &SessionId, followed: &FoldedConversation, n_new: usize) -> FoldSnapshot {
        let base = self.book().sessions.get(session).and_then(|entry| entry.base.clone());
        FoldSnapshot::new(followed, n_new, base.as_ref())
    }

    /// The same for a session without a fitting view.
    pub fn overflow_snapshot(&self, session: &SessionId, sizes: Sizes, budget: Budget) -> FoldSnapshot {
        let base = self.book().sessions.get(session).and_then(|entry| entry.base.clone());
        FoldSnapshot::from_overflow(sizes, budget, base)
    }

    /// All counts until now.
    pub fn status(&self) -> Status {
        let book = self.book();
        Status::new(self, &book)
    }

    /// All counts in the text format of Prometheus.
    pub fn prometheus(&self) -> String {
        let (n_sessions, cost) = {
            let book = self.book();
            (book.sessions.len(), book.cost)
        };
        let n_dropped = self.exporter.as_ref().map_or(0, Exporter::n_dropped);
        self.counters.spans_dropped(n_dropped);
        self.counters.render(n_sessions, self.n_in_flight(), self.started.elapsed(), cost)
    }

    /// The number of requests that have not ended.
    pub fn n_in_flight(&self) -> u64 {
        self.n_in_flight.load(Ordering::Relaxed)
    }

    /// A panic leaves the counts consistent, because each is a single addition.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end_request(&self) {
        self.n_in_flight.fetch_sub(1, Ordering::Relaxed);
        let n_ended = self.n_ended.fetch_add(1, Ordering::Relaxed) + 1;
        if n_ended.is_multiple_of(REQUESTS_PER_UPKEEP) {
            self.counters.run_upkeep();
        }
    }
}

#[cfg(test)]
mod tests;
