//! The metering of one request.

mod accounting; // counts added to the totals and to its session
mod report; //     its log line and its spans

use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfold_store::SessionId;
use fanfold_wire::Format;

use super::Meter;
use super::cost::ResponseUsage;
use super::export::trace::SpanContext;
use super::fold_snapshot::{FoldSnapshot, one_line};
use crate::outcome::{Exit, ProxyOutcome};

/// A conversation request at its arrival.
#[derive(Debug, Clone, Copy)]
pub struct RequestInfo<'a> {
    /// Its format.
    pub format: Format,
    /// Its model, if that is known yet.
    pub model: Option<&'a str>,
    /// The value of its `traceparent` header.
    pub traceparent: Option<&'a str>,
}

/// A request in progress. If it is dropped before its end, the client has closed the connection.
pub struct RequestMeter {
    meter: Arc<Meter>,
    format: &'static str,
    reports_cache_writes: bool,
    model: String,
    /// The row of the table of prices for the model, or `other`.
    family: String,
    started: Instant,
    session: Option<SessionId>,
    snapshot: Option<FoldSnapshot>,
    outcome: ProxyOutcome,
    /// Time of the proxy before the first call to the provider.
    added: Option<Duration>,
    /// Start of the latest call to the provider.
    called: Option<Instant>,
    first_byte: Option<Duration>,
    status: Option<u16>,
    /// The usage of each successful call: first the calls with recalls of originals, then the last one.
    usages: Vec<Option<ResponseUsage>>,
    n_retries: u32,
    /// The span of the client, and that of this request; `None` without a collector.
    parent_span: Option<SpanContext>,
    span: Option<SpanContext>,
    /// Timed parts of the work.
    timings: Vec<(&'static str, Instant, Duration)>,
    is_ended: bool,
}

impl RequestMeter {
    pub(super) fn new(meter: Arc<Meter>, request: &RequestInfo<'_>) -> RequestMeter {
        let is_traced = meter.exporter.is_some();
        let parent_span = request.traceparent.and_then(SpanContext::parse).filter(|_| is_traced);
        let mut request_meter = RequestMeter {
            meter,
            format: request.format.name(),
            reports_cache_writes: request.format.reports_cache_writes(),
            model: String::new(),
            family: "other".to_owned(),
            started: Instant::now(),
            session: None,
            snapshot: None,
            outcome: ProxyOutcome::Whole,
            added: None,
            called: None,
            first_byte: None,
            status: None,
            usages: Vec::new(),
            n_retries: 0,
            parent_span,
            span: is_traced.then(|| SpanContext::child_of(parent_span)),
            timings: Vec::new(),
            is_ended: false,
        };
        if let Some(model) = request.model {
            request_meter.set_model(model);
        }
        request_meter
    }

    /// Sets the model of the request.
    pub fn set_model(&mut self, model: &str) {
        self.model = one_line(model);
        let found = self.meter.prices.find(&self.model);
        self.family = found.map_or("other", |found| found.price.name.as_str()).to_owned();
    }

    /// Sets the session of the request, and adds the new folds of a snapshot.
    pub fn set_session(&mut self, session: &SessionId, snapshot: Option<FoldSnapshot>) {
        self.count_session(session, snapshot.as_ref());
        let Some(snapshot) = snapshot else { return };
        // If the body was folded twice, the prefix is as short as the shorter one of both folds.
        let shared = match (self.snapshot.as_ref().and_then(|first| first.shared), snapshot.shared) {
            (Some(first), Some(second)) => Some(first.min(second)),
            (first, second) => first.or(second),
        };
        self.snapshot = Some(FoldSnapshot { shared, ..snapshot });
    }

    /// Adds a timed part of the work, such as `recognise` or `fold`.
    pub fn add_timing(&mut self, step: &'static str, started: Instant, duration: Duration) {
        if self.span.is_some() {
            self.timings.push((step, started, duration));
        }
    }

    /// The `traceparent` header for the provider; `None` if that of the client is forwarded.
    pub fn traceparent(&self) -> Option<String> {
        self.span.map(|span| span.to_string())
    }

    /// Sets the outcome of the body.
    pub fn set_outcome(&mut self, outcome: ProxyOutcome) {
        self.outcome = outcome;
        // No fold was sent, so none saves anything.
        if let (ProxyOutcome::Unchanged(_), Some(snapshot)) = (outcome, &mut self.snapshot) {
            snapshot.sent = snapshot.came;
        }
    }

    /// A call to the provider starts, with a body of this size.
    pub fn start_call(&mut self, n_bytes: usize) {
        let is_first = self.added.is_none();
        let added = *self.added.get_or_insert_with(|| self.started.elapsed());
        self.called = Some(Instant::now());
        if is_first {
            self.meter.counters.call_started(self.format, added, n_bytes);
        }
    }

    /// The provider refused the request for its length.
    pub fn count_refusal(&mut self) {
        self.meter.counters.refused();
        self.meter.book().totals.refused += 1;
    }

    /// The request is folded harder and sent again.
    pub fn count_harder_fold(&mut self) {
        self.n_retries += 1;
        self.meter.counters.retried();
        self.meter.book().totals.retried += 1;
    }

    /// The request is sent again in another form.
    pub fn count_retry(&mut self) {
        self.n_retries += 1;
    }

    /// The response starts.
    pub fn first_byte(&mut self, status: u16) {
        self.status = Some(status);
        if self.first_byte.is_none() {
            let after = self.called.unwrap_or(self.started).elapsed();
            self.first_byte = Some(after);
            self.meter.counters.first_byte(self.format, status, after);
        }
    }

    /// The model recalled an original in a call with this usage. The next call is a cost of folding.
    pub fn count_recall(&mut self, usage: Option<ResponseUsage>) {
        self.meter.count_recall(self.session.as_ref(), "tool");
        let usage = usage.map(|usage| self.normalized(usage));
        self.usages.push(usage);
    }

    /// Adds the usage of the last call.
    pub fn add_usage(&mut self, usage: ResponseUsage) {
        let usage = self.normalized(usage);
        self.usages.push(Some(usage));
    }

    /// A provider that reports cache writes and reports none has written nothing.
    fn normalized(&self, usage: ResponseUsage) -> ResponseUsage {
        let written = usage.written.or(self.reports_cache_writes.then_some(0));
        ResponseUsage { written, ..usage }
    }

    fn total_usage(&self) -> Option<ResponseUsage> {
        let add = |a: ResponseUsage, b: ResponseUsage| ResponseUsage {
            input: a.input + b.input,
            read: a.read + b.read,
            written: a.written.map_or(b.written, |written| Some(written + b.written.unwrap_or_default())),
            output: a.output + b.output,
        };
        self.usages.iter().flatten().copied().reduce(add)
    }

    /// Ends the request.
    pub fn end(mut self, exit: Exit) {
        self.finish(exit);
    }

    fn finish(&mut self, exit: Exit) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let cost = self.count_end(exit);
        self.meter.end_request();
        let counters = &self.meter.counters;
        counters.outcome(self.format, &self.family, self.outcome);
        counters.ended(self.format, exit, self.started.elapsed());
        if let Some(usage) = self.total_usage() {
            counters.usage(&usage);
        }
        if let Some(snapshot) = &self.snapshot {
            counters.sizes(snapshot.came, snapshot.sent);
        }
        self.log(exit, cost);
        let sampled = self.span.filter(|span| span.is_sampled);
        if let (Some(exporter), Some(span)) = (&self.meter.exporter, sampled) {
            exporter.queue(self.spans(span, exit));
        }
    }
}

impl Drop for RequestMeter {
    fn drop(&mut self) {
        self.finish(Exit::ClientGone);
    }
}
