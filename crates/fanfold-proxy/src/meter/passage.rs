//! One request on its way, and the moments that are counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_core::thousands;
use fanfold_store::SessionId;
use fanfold_wire::Format;
use serde_json::json;

use super::Meter;
use super::glance::{Glance, one_line};
use super::money::{Charge, Money, Used, Way, reported};
use super::trace::{Kind, Place, Span, wall};
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
    used: Option<Used>,
    /// What calls of our own cost that the client did not ask for.
    extra: f64,
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
            format: name_of(arrival.format),
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
            used: None,
            extra: 0.0,
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
        (known.came, known.sent) = (glance.came, glance.sent);
        known.n_folds = glance.n_folds;
        known.n_folds_here += glance.n_new_folds;
        known.n_misses += glance.n_misses;
        known.folded_away += glance.folded_away;
        known.seen = Some(glance.seen.clone());
        book.sums.n_folds += glance.n_new_folds;
        book.sums.n_misses += glance.n_misses;
        book.sums.tokens.folded_away += glance.folded_away;
        book.families.entry(self.family.clone()).or_default().folded_away += glance.folded_away;
        drop(book);
        meter.counters.folds(glance.n_new_folds, glance.folded_away, glance.n_misses);
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

    /// The answer begins.
    pub fn first_byte(&mut self, status: u16) {
        self.status = Some(status);
        if self.first_byte.is_none() {
            let after = self.called.unwrap_or(self.began).elapsed();
            self.first_byte = Some(after);
            self.meter.counters.first_byte(self.format, status, after);
        }
    }

    /// A fold was opened for the model inside the proxy. The call that asked for it cost what is given, and the client
    /// never asked for it.
    pub fn recalled(&mut self, used: Option<Used>) {
        self.meter.recalled(self.session.as_ref(), "tool");
        let price = self.meter.prices.find(&self.model).map(|found| found.price);
        if let (Some(price), Some(used)) = (price, used) {
            self.extra += reported(price, &used);
        }
    }

    /// What the provider reports of the call whose answer goes to the client.
    pub fn used(&mut self, used: Used) {
        // Anthropic tells what it wrote to its cache: if it tells nothing, it wrote nothing.
        let is_told = self.format == name_of(Format::Anthropic);
        let written = used.written.or(is_told.then_some(0));
        self.used = Some(Used { written, ..used });
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
        if let Some(used) = &self.used {
            self.meter.counters.used(used);
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

    /// The request, and what was done for it.
    fn spans(&self, place: Place, exit: Exit) -> Vec<Span> {
        let child = |name: &str, kind: Kind, began: Instant, took: Duration| Span {
            place: Place::below(Some(place)),
            parent: Some(place.span),
            name: name.to_owned(),
            kind,
            began: wall(began),
            took,
            attributes: Vec::new(),
            is_error: false,
        };
        let is_error = exit != Exit::Done || self.status.is_some_and(|status| status >= 500);
        let glance = self.glance.as_ref();
        let attributes = vec![
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!(self.model)),
            ("gen_ai.usage.input_tokens", json!(self.used.map(|used| used.input))),
            ("gen_ai.usage.output_tokens", json!(self.used.map(|used| used.output))),
            ("http.response.status_code", json!(self.status)),
            ("fanfold.session", json!(self.session.as_ref().map(|session| &session.0))),
            ("fanfold.format", json!(self.format)),
            ("fanfold.outcome", json!(self.outcome.name())),
            ("fanfold.exit", json!(exit.name())),
            ("fanfold.tokens.came", json!(glance.map(|glance| glance.came))),
            ("fanfold.tokens.sent", json!(glance.map(|glance| glance.sent))),
        ];
        let mut spans = vec![Span {
            place,
            parent: self.parent.map(|parent| parent.span),
            name: format!("chat {}", self.model).trim_end().to_owned(),
            kind: Kind::Server,
            began: wall(self.began),
            took: self.began.elapsed(),
            attributes,
            is_error,
        }];
        spans.extend(self.steps.iter().map(|(name, began, took)| child(name, Kind::Internal, *began, *took)));
        if let Some(called) = self.called {
            let all = called.elapsed();
            let first = self.first_byte.unwrap_or(all);
            spans.push(child("first byte", Kind::Client, called, first));
            if self.first_byte.is_some() {
                spans.push(child("stream", Kind::Client, called + first, all.saturating_sub(first)));
            }
        }
        spans
    }

    /// Adds it to the sums and to its session. Says what it cost.
    fn settle(&self, exit: Exit) -> Option<Money> {
        let meter = &*self.meter;
        let price = meter.prices.find(&self.model).map(|found| found.price);
        let mut guard = meter.book();
        let book = &mut *guard;
        let known = self.session.as_ref().and_then(|session| book.sessions.get(session));
        let money = price.and_then(|price| {
            // What was refused or never answered costs nothing.
            let is_answered = self.status.is_some_and(|status| (200..300).contains(&status));
            let mut money = match (&self.glance, self.used) {
                _ if !is_answered => return None,
                (Some(glance), used) => {
                    let way = if self.outcome == Outcome::Folded { Way::Folded } else { Way::AsItCame };
                    let is_harmless = matches!(self.outcome, Outcome::AsItCame(_));
                    // What left as it came for another reason is no fold, and saves nothing.
                    let sent = if is_harmless { glance.came } else { glance.sent };
                    let charge = Charge {
                        came: glance.came,
                        sent,
                        shared: glance.shared.filter(|_| !is_harmless),
                        went: way,
                        used,
                        at: meter.began.elapsed(),
                    };
                    let mut unknown = super::money::Account::default();
                    let account = match known {
                        Some(known) => {
                            known.has_price = true;
                            let money = known.account.charge(price, &charge);
                            known.money.add(money);
                            known.money.sent += self.extra;
                            money
                        }
                        None => unknown.charge(price, &charge),
                    };
                    account
                }
                (None, Some(used)) => {
                    let dollars = reported(price, &used);
                    Money { came: dollars, sent: dollars }
                }
                (None, None) => return None,
            };
            money.sent += self.extra;
            Some(money)
        });
        if let Some(known) = self.session.as_ref().and_then(|session| book.sessions.get(session)) {
            known.n_in_flight = known.n_in_flight.saturating_sub(1);
            known.last = meter.began.elapsed();
        }
        let sums = &mut book.sums;
        sums.n_requests += 1;
        *sums.outcomes.entry(self.outcome.name()).or_default() += 1;
        *sums.exits.entry(exit.name()).or_default() += 1;
        if let Outcome::AsItCame(why) = self.outcome {
            *sums.reasons.entry(why).or_default() += 1;
        }
        let family = book.families.entry(self.family.clone()).or_default();
        family.n_requests += 1;
        family.n_folded += u64::from(matches!(self.outcome, Outcome::Folded | Outcome::Observed));
        if let Some(glance) = &self.glance {
            sums.tokens.came += glance.came;
            sums.tokens.sent += glance.sent;
            family.came += glance.came;
            family.sent += glance.sent;
        }
        if let Some(used) = &self.used {
            sums.tokens.input += used.input;
            sums.tokens.read += used.read;
            sums.tokens.written += used.written.unwrap_or_default();
            sums.tokens.output += used.output;
        }
        match money {
            Some(money) => {
                sums.money.add(money);
                sums.n_priced += 1;
                family.money.add(money);
                family.n_priced += 1;
            }
            None => sums.n_unpriced += 1,
        }
        money
    }

    /// One line for each request. Nothing of a body is in it, and nothing of a header.
    fn log(&self, exit: Exit, money: Option<Money>) {
        let ms = |took: Option<Duration>| took.map_or(0.0, |took| (took.as_secs_f64() * 1e5).round() / 100.0);
        let sizes = self.glance.as_ref().map_or(String::new(), |glance| {
            format!("{} -> {} tokens", thousands(glance.came), thousands(glance.sent))
        });
        let why = match self.outcome {
            Outcome::AsItCame(why) => why,
            _ => "",
        };
        tracing::info!(
            target: "fanfold::request",
            session = self.session.as_ref().map_or("", |session| session.0.as_str()),
            format = self.format,
            model = self.model,
            outcome = self.outcome.name(),
            why,
            came = self.glance.as_ref().map(|glance| glance.came),
            sent = self.glance.as_ref().map(|glance| glance.sent),
            input = self.used.map(|used| used.input),
            read = self.used.map(|used| used.read),
            output = self.used.map(|used| used.output),
            saved_dollars = money.map(|money| (money.saved() * 1e6).round() / 1e6),
            ours_ms = ms(self.ours),
            first_byte_ms = ms(self.first_byte),
            took_ms = ms(Some(self.began.elapsed())),
            retries = self.n_retries,
            status = self.status.unwrap_or_default(),
            exit = exit.name(),
            "{sizes}"
        );
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        self.end(Exit::ClientGone);
    }
}

/// A format's name, as labels have it.
fn name_of(format: Format) -> &'static str {
    match format {
        Format::Chat => "chat",
        Format::Responses => "responses",
        Format::Anthropic => "anthropic",
        Format::ShareGpt => "sharegpt",
        Format::Hermes => "hermes",
    }
}
