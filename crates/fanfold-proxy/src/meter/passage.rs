//! One request on its way, and the moments that are counted.

mod settle; // what it adds to the sums
mod tell; //   its line in the log, and its spans

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_store::SessionId;
use fanfold_wire::Format;

use super::Meter;
use super::glance::{Glance, one_line};
use super::money::Used;
use super::trace::Place;
use super::words::{Exit, Outcome};

/// A request that came.
#[derive(Debug, Clone, Copy)]
pub struct Arrival<'a> {
    /// How it is written.
    pub format: Format,
    /// The model that it names, if that is known yet.
    pub model: Option<&'a str>,
    /// Its header `traceparent`.
    pub traceparent: Option<&'a str>,
}

/// A request on its way. If it goes without an end, its client has gone.
pub struct Passage {
    meter: Arc<Meter>,
    format: &'static str,
    reports_cache_writes: bool,
    model: String,
    /// The row of the table of prices that holds for the model, or `other`.
    family: String,
    began: Instant,
    session: Option<SessionId>,
    glance: Option<Glance>,
    outcome: Outcome,
    /// Our own time before the first call upstream.
    ours: Option<Duration>,
    /// When the newest call upstream began.
    called: Option<Instant>,
    first_byte: Option<Duration>,
    status: Option<u16>,
    /// What the provider reports of each call upstream: the one that was folded first, then those made to go on after a
    /// recall. The last one's is told at its end.
    rounds: Vec<Option<Used>>,
    n_retries: u32,
    /// Who asked, and where we are; none if nobody collects spans.
    parent: Option<Place>,
    place: Option<Place>,
    /// What was done for it, when, and for how long.
    steps: Vec<(&'static str, Instant, Duration)>,
    is_ended: bool,
}

impl Passage {
    pub(super) fn new(meter: Arc<Meter>, arrival: &Arrival<'_>) -> Passage {
        let parent = arrival.traceparent.and_then(Place::parse).filter(|_| meter.exporter.is_some());
        let place = meter.exporter.is_some().then(|| Place::below(parent));
        let mut passage = Passage {
            meter,
            format: arrival.format.name(),
            reports_cache_writes: arrival.format.reports_cache_writes(),
            model: String::new(),
            family: "other".to_owned(),
            began: Instant::now(),
            session: None,
            glance: None,
            outcome: Outcome::Whole,
            ours: None,
            called: None,
            first_byte: None,
            status: None,
            rounds: Vec::new(),
            n_retries: 0,
            parent,
            place,
            steps: Vec::new(),
            is_ended: false,
        };
        if let Some(model) = arrival.model {
            passage.asks(model);
        }
        passage
    }

    /// The model is known that it asks.
    pub fn asks(&mut self, model: &str) {
        self.model = one_line(model);
        let found = self.meter.prices.find(&self.model);
        self.family = found.map_or("other", |found| found.price.name.as_str()).to_owned();
    }

    /// Its session is known, and how it was folded, if it was looked at.
    pub fn looked(&mut self, session: &SessionId, glance: Option<Glance>) {
        let meter = Arc::clone(&self.meter);
        let now = meter.began.elapsed();
        let mut book = meter.book();
        let known = book.sessions.take_up(session, self.format, now);
        if self.session.is_none() {
            known.n_requests += 1;
            known.n_in_flight += 1;
        }
        known.model.clone_from(&self.model);
        self.session = Some(session.clone());
        let Some(glance) = glance else { return };
        if !glance.words.is_empty() {
            known.words.clone_from(&glance.words);
        }
        (known.window, known.room) = (glance.window, glance.room);
        (known.came, known.sent, known.needs) = (glance.came, glance.sent, glance.needs);
        known.pressure = glance.pressure;
        known.n_turns += glance.n_new_turns;
        known.n_folds = glance.n_folds;
        known.n_folds_here += glance.n_new_folds;
        known.n_misses += glance.n_misses;
        known.folded_away += glance.folded_away;
        known.seen = Some(glance.seen.clone());
        book.sums.n_folds += glance.n_new_folds;
        book.sums.n_misses += glance.n_misses;
        book.sums.n_turns += glance.n_new_turns;
        book.sums.before += glance.folds.iter().map(|(before, _)| before).sum::<u64>();
        book.sums.after += glance.folds.iter().map(|(_, after)| after).sum::<u64>();
        book.sums.tokens.folded_away += glance.folded_away;
        book.families.entry(self.family.clone()).or_default().folded_away += glance.folded_away;
        drop(book);
        meter.counters.folds(glance.n_new_folds, glance.folded_away, glance.n_misses);
        meter.counters.turns(glance.n_new_turns, &glance.folds);
        // Folded harder for a second try: what broke the beginning at the first one broke it still.
        let shared = match (self.glance.as_ref().and_then(|first| first.shared), glance.shared) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        };
        self.glance = Some(Glance { shared, ..glance });
    }

    /// Something was done for it: `recognise`, `fold`.
    pub fn did(&mut self, step: &'static str, began: Instant, took: Duration) {
        if self.place.is_some() {
            self.steps.push((step, began, took));
        }
    }

    /// The header `traceparent` to send upstream; none if the one that came goes on as it is.
    pub fn traceparent(&self) -> Option<String> {
        self.place.map(|place| place.to_string())
    }

    /// It is decided how its body leaves.
    pub fn left(&mut self, outcome: Outcome) {
        self.outcome = outcome;
        // Nothing of a fold was sent, so nothing is saved.
        if let (Outcome::AsItCame(_), Some(glance)) = (outcome, &mut self.glance) {
            glance.sent = glance.came;
        }
    }

    /// A call upstream begins, with so many bytes.
    pub fn sending(&mut self, n_bytes: usize) {
        let is_first = self.ours.is_none();
        let ours = *self.ours.get_or_insert_with(|| self.began.elapsed());
        self.called = Some(Instant::now());
        if is_first {
            self.meter.counters.sending(self.format, ours, n_bytes);
        }
    }

    /// The provider refused it for its length.
    pub fn refused(&mut self) {
        self.meter.counters.refused();
        self.meter.book().sums.n_refused += 1;
    }

    /// It is sent again, folded harder.
    pub fn retried(&mut self) {
        self.n_retries += 1;
        self.meter.counters.retried();
        self.meter.book().sums.n_retried += 1;
    }

    /// It is sent again, in another form.
    pub fn again(&mut self) {
        self.n_retries += 1;
    }

    /// The answer begins.
    pub fn first_byte(&mut self, status: u16) {
        self.status = Some(status);
        if self.first_byte.is_none() {
            let after = self.called.unwrap_or(self.began).elapsed();
            self.first_byte = Some(after);
            self.meter.counters.first_byte(self.format, status, after);
        }
    }

    /// A fold was opened for the model inside the proxy: what the provider reports of the call that asked for it. The
    /// provider is asked once more for it, and that is a cost of folding.
    pub fn recalled(&mut self, used: Option<Used>) {
        self.meter.recalled(self.session.as_ref(), "tool");
        let used = used.map(|used| self.told(used));
        self.rounds.push(used);
    }

    /// What the provider reports of the call whose answer goes to the client.
    pub fn used(&mut self, used: Used) {
        let used = self.told(used);
        self.rounds.push(Some(used));
    }

    fn told(&self, used: Used) -> Used {
        let written = used.written.or(self.reports_cache_writes.then_some(0));
        Used { written, ..used }
    }

    /// All that was reported, together.
    fn used_in_all(&self) -> Option<Used> {
        let add = |a: Used, b: Used| Used {
            input: a.input + b.input,
            read: a.read + b.read,
            written: a.written.map_or(b.written, |written| Some(written + b.written.unwrap_or_default())),
            output: a.output + b.output,
        };
        self.rounds.iter().flatten().copied().reduce(add)
    }

    /// It has ended.
    pub fn ended(mut self, exit: Exit) {
        self.end(exit);
    }

    /// The session it belongs to.
    pub fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    fn end(&mut self, exit: Exit) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let money = self.settle(exit);
        self.meter.one_ended();
        self.meter.counters.left(self.format, &self.family, self.outcome);
        self.meter.counters.ended(self.format, exit, self.began.elapsed());
        if let Some(used) = self.used_in_all() {
            self.meter.counters.used(&used);
        }
        if let Some(glance) = &self.glance {
            self.meter.counters.sizes(glance.came, glance.sent);
        }
        self.log(exit, money);
        if let (Some(exporter), Some(place)) =
            (&self.meter.exporter, self.place.filter(|place| place.is_kept))
        {
            exporter.take(self.spans(place, exit));
        }
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.end(Exit::ClientGone);
    }
}
