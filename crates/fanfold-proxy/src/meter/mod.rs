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

use fanfold_engine::Followed;
use fanfold_replay::PriceTable;
use fanfold_store::SessionId;

pub use export::{Collector, CollectorError};
pub use glance::Glance;
pub use money::Used;
pub use passage::{Arrival, Passage};
pub use redact::{shown_headers, shown_path};
pub use report::dollars;
pub use status::{Dollars, ModelStatus, SessionStatus, Status, TokenTotals, Totals};
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

    /// Looks at a session as a request has left it; `n_new` of its messages were new. Called where the session is at
    /// hand; what comes out goes into [`Passage::looked`].
    pub fn glance(&self, session: &SessionId, followed: &Followed, n_new: usize) -> Glance {
        let seen = self.book().sessions.get(session).and_then(|known| known.seen.clone());
        Glance::of(followed, n_new, seen.as_ref())
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
mod tests {
    use super::*;
    use fanfold_wire::Format;

    fn meter() -> Arc<Meter> {
        Arc::new(Meter::new(PriceTable::built_in()))
    }

    fn arrival(model: Option<&str>) -> Arrival<'_> {
        Arrival { format: Format::Chat, model, traceparent: None }
    }

    fn glance(came: u64, sent: u64) -> Glance {
        Glance { came, sent, window: 200_000, room: 190_000, ..Glance::default() }
    }

    fn used(input: u64, read: u64) -> Used {
        Used { input, read, written: None, output: 100 }
    }

    /// One request of a session from start to end.
    fn pass(meter: &Arc<Meter>, session: &str, glance: Glance, used: Option<Used>) {
        let outcome = if glance.sent < glance.came { Outcome::Folded } else { Outcome::Whole };
        let mut passage = meter.came(&arrival(Some("gpt-5")));
        passage.looked(&SessionId(session.to_owned()), Some(glance));
        passage.left(outcome);
        passage.sending(1000);
        passage.first_byte(200);
        used.into_iter().for_each(|used| passage.used(used));
        passage.ended(Exit::Done);
    }

    #[test]
    fn a_request_is_counted_everywhere() {
        let meter = meter();
        pass(
            &meter,
            "a",
            Glance {
                n_new_folds: 2,
                n_folds: 2,
                folded_away: 60_000,
                n_misses: 1,
                ..glance(100_000, 40_000)
            },
            Some(used(40_000, 0)),
        );
        meter.passed_through();
        meter.recalled(Some(&SessionId("a".to_owned())), "mcp");
        let status = meter.status();
        let totals = &status.totals;
        assert_eq!(
            (totals.requests, totals.passed_through, totals.folds, totals.recalls, totals.misses),
            (1, 1, 2, 1, 1)
        );
        assert_eq!(
            (totals.tokens.came, totals.tokens.sent, totals.tokens.folded_away),
            (100_000, 40_000, 60_000)
        );
        assert_eq!(totals.outcomes.get("folded"), Some(&1));
        // 60,000 tokens at 1.25 dollars a million.
        assert_eq!(totals.dollars.saved, 0.075);
        let session = &status.sessions[0];
        assert_eq!((session.folds, session.recalls, session.misses, session.in_flight), (2, 1, 1, 0));
        assert_eq!(session.dollars, Some(totals.dollars));
        assert_eq!(status.models[0].family, "gpt-5");
    }

    #[test]
    fn a_client_that_goes_away_is_counted_as_gone() {
        let meter = meter();
        let mut passage = meter.came(&arrival(None));
        passage.looked(&SessionId("a".to_owned()), None);
        assert_eq!((meter.n_in_flight(), meter.status().sessions[0].in_flight), (1, 1));
        drop(passage);
        let status = meter.status();
        assert_eq!((meter.n_in_flight(), status.sessions[0].in_flight), (0, 0));
        assert_eq!(status.totals.ended.get("client_gone"), Some(&1));
    }

    #[test]
    fn what_leaves_as_it_came_saves_nothing() {
        let meter = meter();
        let mut passage = meter.came(&arrival(Some("gpt-5")));
        passage.looked(&SessionId("a".to_owned()), Some(glance(100_000, 40_000)));
        passage.left(Outcome::AsItCame("late"));
        passage.sending(1000);
        passage.first_byte(200);
        passage.used(used(100_000, 0));
        passage.ended(Exit::Done);
        let totals = meter.status().totals;
        assert_eq!((totals.dollars.saved, totals.as_it_came.get("late")), (0.0, Some(&1)));
    }

    #[test]
    fn a_recall_inside_the_proxy_costs_what_it_cost() {
        let meter = meter();
        let mut passage = meter.came(&arrival(Some("gpt-5")));
        passage.looked(&SessionId("a".to_owned()), Some(glance(1_000, 1_000)));
        passage.sending(10);
        passage.first_byte(200);
        passage.recalled(Some(Used { input: 100_000, ..Used::default() }));
        passage.used(used(1_000, 0));
        passage.ended(Exit::Done);
        let status = meter.status();
        assert_eq!((status.totals.dollars.saved, status.totals.recalls), (-0.125, 1));
        assert_eq!(status.sessions[0].dollars.map(|money| money.saved), Some(-0.125));
    }

    #[test]
    fn an_observing_meter_tells_what_would_have_been_saved() {
        let meter = Arc::new(Meter::new(PriceTable::built_in()).observing());
        for (came, sent) in [(100_000, 40_000), (110_000, 50_000)] {
            let mut passage = meter.came(&arrival(Some("gpt-5")));
            let folded_away = if came == 100_000 { 60_000 } else { 0 };
            passage.looked(&SessionId("a".to_owned()), Some(Glance { folded_away, ..glance(came, sent) }));
            passage.left(Outcome::Observed);
            passage.sending(10);
            passage.first_byte(200);
            // The second one finds the first in the cache.
            passage.used(used(came, if came == 100_000 { 0 } else { 100_000 }));
            passage.ended(Exit::Done);
        }
        let status = meter.status();
        // 60,000 fewer written, then 60,000 fewer read at a tenth.
        assert_eq!(status.totals.dollars.saved, 0.0825);
        assert_eq!(
            status.report(),
            "2 of 2 requests would have been folded: 210,000 -> 90,000 tokens in all, 60,000 folded away in 0 folds\n\
             that would have saved $0.08: $0.15 as they came, $0.07 folded\n"
        );
    }

    #[test]
    fn any_number_of_sessions_and_models_takes_the_same_room() {
        let meter = meter();
        for n in 0..2_000 {
            let model = format!("model-{n}");
            let mut passage = meter.came(&arrival(Some(&model)));
            passage.looked(&SessionId(format!("s{n}")), Some(glance(10, 10)));
            passage.ended(Exit::Done);
        }
        let status = meter.status();
        assert_eq!((status.sessions.len(), status.models.len()), (300, 1));
        assert_eq!(status.sessions[0].id, "s1999");
        let text = meter.prometheus();
        assert!(text.len() < 20_000 && !text.contains("s1999") && !text.contains("model-1"), "{text}");
    }

    #[test]
    fn prometheus_text_follows_the_rules() {
        let meter = meter();
        pass(&meter, "a", glance(100_000, 40_000), Some(used(40_000, 0)));
        meter.passed_through();
        meter.recalled(None, "mcp");
        let mut refused = meter.came(&arrival(Some("x")));
        refused.left(Outcome::AsItCame("store"));
        refused.refused();
        refused.retried();
        refused.ended(Exit::Stalled);
        check_prometheus(&meter.prometheus());
    }

    /// What `promtool check metrics` looks at: each family has help and a type, names end in their units, counters in
    /// `_total` and nothing else does, labels are plain words, histograms are whole.
    fn check_prometheus(text: &str) {
        use std::collections::{BTreeMap, BTreeSet};
        let mut types = BTreeMap::new();
        let mut helped = BTreeSet::new();
        let mut seen = BTreeSet::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, words) = rest.split_once(' ').unwrap();
                assert!(words.ends_with('.'), "{line}");
                assert!(helped.insert(name.to_owned()), "{line} comes twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "{line} comes twice");
                assert!(
                    name.starts_with("fanfold_") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                );
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                if kind == "histogram" {
                    assert!(
                        ["_seconds", "_bytes", "_tokens"].iter().any(|unit| name.ends_with(unit)),
                        "{line}"
                    );
                }
            } else {
                let name = line.split(['{', ' ']).next().unwrap();
                let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                let family = family.filter(|family| types.contains_key(*family)).unwrap_or(name);
                assert!(types.contains_key(family), "{line} has no type");
                assert!(helped.contains(family), "{line} has no help");
                assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
                assert!(seen.insert(line.rsplit_once(' ').unwrap().0.to_owned()), "{line} comes twice");
            }
        }
        for (name, kind) in &types {
            if kind == "histogram" {
                assert!(text.contains(&format!("{name}_sum")) && text.contains("le=\"+Inf\""), "{name}");
            }
        }
        assert!(types.len() >= 18, "{types:?}");
    }
}
