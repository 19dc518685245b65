//! What passes through, counted: for people at a terminal, for Prometheus, and for a log line per request.
//!
//! The proxy calls a [`Passage`] at the moments of a request; the [`Meter`] adds them up. Nothing here can fail or hold a
//! request up, and what is kept is bounded whatever the number of sessions.
//!
//! ```text
//! meter.came(…) -> Passage --looked--left--sending--first_byte--used--ended--> totals, sessions, a log line
//! ```

mod words; //    outcomes and endings, as labels have them
mod glance; //   a fold in numbers, and the calls that were made again for it
mod money; //    what a request cost, and what it would have cost
mod sums; //     what is added up
mod summaries; // summaries by a model, and what came instead
mod notices; //  what people hear of a session
mod sessions; // the sessions used last
mod counters; // the same for Prometheus
mod trace; //    its place among those of other programs
mod export; //   spans sent to a collector
mod passage; //  one request on its way
mod status; //   all of it as JSON
mod report; //   what was saved, in words
mod watch; //    the status of another proxy, over HTTP
mod redact; //   what may be written down of a request's outside

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fanfold_core::Budget;
use fanfold_engine::{Followed, Sizes};
use fanfold_replay::PriceTable;
use fanfold_store::SessionId;

pub use export::{Collector, CollectorError};
pub use glance::Glance;
pub use money::Used;
pub use notices::level_to_tell;
pub use passage::{Arrival, Passage};
pub use redact::{shown_headers, shown_path};
pub use report::dollars;
pub use status::{Dollars, FoldTotals, ModelStatus, SessionStatus, Status, TokenTotals, Totals};
pub use summaries::{SummaryTotals, Writer};
pub use watch::{WatchError, Watcher};
pub use words::{Exit, Outcome};

use counters::Counters;
use export::Exporter;
use sessions::Sessions;
use sums::{ByFamily, Sums};

/// Counts what passes through.
pub struct Meter {
    prices: PriceTable,
    is_observing: bool,
    began: Instant,
    counters: Counters,
    exporter: Option<Exporter>,
    n_in_flight: AtomicU64,
    n_ended: AtomicU64,
    /// Guards the sums and the sessions; held for a few additions at a time.
    book: Mutex<Book>,
}

/// What is added up.
#[derive(Default)]
struct Book {
    sums: Sums,
    families: ByFamily,
    sessions: Sessions,
}

/// So often the histograms are cleared up, so that they stay small when nobody reads them.
const REQUESTS_PER_CLEARING: u64 = 256;

impl Meter {
    /// A meter that charges by these prices.
    pub fn new(prices: PriceTable) -> Meter {
        Meter {
            prices,
            is_observing: false,
            began: Instant::now(),
            counters: Counters::new(),
            exporter: None,
            n_in_flight: AtomicU64::new(0),
            n_ended: AtomicU64::new(0),
            book: Mutex::default(),
        }
    }

    /// The meter of a proxy that changes nothing: what it tells as saved is what folding would have saved.
    pub fn observing(mut self) -> Meter {
        self.is_observing = true;
        self
    }

    /// The same with spans that go to a collector. It must be called on a runtime.
    pub fn tracing_to(mut self, collector: Collector) -> Meter {
        self.exporter = Some(Exporter::start(collector));
        self
    }

    /// Sends what waits to be sent to the collector.
    pub async fn flush(&self) {
        if let Some(exporter) = &self.exporter {
            exporter.flush().await;
        }
    }

    /// A request for a model came.
    pub fn came(self: &Arc<Meter>, arrival: &Arrival<'_>) -> Passage {
        self.n_in_flight.fetch_add(1, Ordering::Relaxed);
        Passage::new(Arc::clone(self), arrival)
    }

    /// Something came that is none of ours and goes through.
    pub fn passed_through(&self) {
        self.counters.passed_through();
        self.book().sums.n_passed_through += 1;
    }

    /// A fold was opened for the model or a person: by a tool of ours, over MCP or HTTP.
    pub fn recalled(&self, session: Option<&SessionId>, way: &'static str) {
        self.counters.recalled(way);
        let mut book = self.book();
        book.sums.n_recalls += 1;
        if let Some(known) = session.and_then(|session| book.sessions.get(session)) {
            known.n_recalls += 1;
        }
    }

    /// Something happened with what is remembered: one of a few words.
    pub fn remembered(&self, what: &'static str) {
        self.counters.remembered(what);
    }

    /// Looks at a session as a request has left it; `n_new` of its messages were new. Called where the session is at
    /// hand; what comes out goes into [`Passage::looked`].
    pub fn glance(&self, session: &SessionId, followed: &Followed, n_new: usize) -> Glance {
        let seen = self.book().sessions.get(session).and_then(|known| known.seen.clone());
        Glance::of(followed, n_new, seen.as_ref())
    }

    /// A session of which no view fits, as a glance at it would show it: what there is, and what the smallest view needs.
    pub fn glance_at_overflow(&self, session: &SessionId, sizes: Sizes, budget: Budget) -> Glance {
        let seen = self.book().sessions.get(session).and_then(|known| known.seen.clone());
        Glance::of_overflow(sizes, budget, seen)
    }

    /// How much was counted until now.
    pub fn status(&self) -> Status {
        let book = self.book();
        Status::of(self, &book)
    }

    /// What Prometheus reads.
    pub fn prometheus(&self) -> String {
        let (n_sessions, dollars) = {
            let book = self.book();
            (book.sessions.len(), (book.sums.money.came, book.sums.money.sent))
        };
        let n_dropped = self.exporter.as_ref().map_or(0, Exporter::n_dropped);
        self.counters.spans_dropped(n_dropped);
        self.counters.render(n_sessions, self.n_in_flight(), self.began.elapsed(), dollars)
    }

    /// Requests that have not ended.
    pub fn n_in_flight(&self) -> u64 {
        self.n_in_flight.load(Ordering::Relaxed)
    }

    /// What its counts mean is still true after a panic in between: each is an addition of its own.
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn one_ended(&self) {
        self.n_in_flight.fetch_sub(1, Ordering::Relaxed);
        let n_ended = self.n_ended.fetch_add(1, Ordering::Relaxed) + 1;
        if n_ended.is_multiple_of(REQUESTS_PER_CLEARING) {
            self.counters.clear_up();
        }
    }
}

#[cfg(test)]
mod tests; // a request is counted everywhere, and only once
