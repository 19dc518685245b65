//! The log line and the spans of a request.

use std::time::{Duration, Instant};

use fanfold_core::thousands;
use serde_json::json;

use super::RequestMeter;
use crate::meter::cost::BothCosts;
use crate::meter::export::trace::{Span, SpanContext, SpanKind, wall_time};
use crate::outcome::{Exit, ProxyOutcome};

impl RequestMeter {
    /// Writes one line per request. It contains nothing of a body or a header.
    pub(super) fn log(&self, exit: Exit, cost: Option<BothCosts>) {
        let ms = |duration: Option<Duration>| {
            duration.map_or(0.0, |duration| (duration.as_secs_f64() * 1e5).round() / 100.0)
        };
        let sizes = self.snapshot.as_ref().map_or(String::new(), |snapshot| {
            format!("{} -> {} tokens", thousands(snapshot.came), thousands(snapshot.sent))
        });
        let usage = self.total_usage();
        let why = match self.outcome {
            ProxyOutcome::Unchanged(reason) => reason.name(),
            _ => "",
        };
        tracing::info!(
            target: "fanfold::request",
            session = self.session.as_ref().map_or("", |session| session.0.as_str()),
            format = self.format,
            model = self.model,
            outcome = self.outcome.name(),
            why,
            came = self.snapshot.as_ref().map(|snapshot| snapshot.came),
            sent = self.snapshot.as_ref().map(|snapshot| snapshot.sent),
            input = usage.map(|usage| usage.input),
            read = usage.map(|usage| usage.read),
            output = usage.map(|usage| usage.output),
            saved_dollars = cost.map(|cost| (cost.saved() * 1e6).round() / 1e6),
            ours_ms = ms(self.added),
            first_byte_ms = ms(self.first_byte),
            took_ms = ms(Some(self.started.elapsed())),
            retries = self.n_retries,
            status = self.status.unwrap_or_default(),
            exit = exit.name(),
            "{sizes}"
        );
    }

    /// The span of the request, with a child for each part of the work.
    pub(super) fn spans(&self, context: SpanContext, exit: Exit) -> Vec<Span> {
        let child = |name: &str, kind: SpanKind, started: Instant, duration: Duration| Span {
            context: SpanContext::child_of(Some(context)),
            parent: Some(context.span),
            name: name.to_owned(),
            kind,
            started: wall_time(started),
            duration,
            attributes: Vec::new(),
            is_error: false,
        };
        let is_error = exit != Exit::Done || self.status.is_some_and(|status| status >= 500);
        let (snapshot, usage) = (self.snapshot.as_ref(), self.total_usage());
        let attributes = vec![
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!(self.model)),
            ("gen_ai.usage.input_tokens", json!(usage.map(|usage| usage.input))),
            ("gen_ai.usage.output_tokens", json!(usage.map(|usage| usage.output))),
            ("http.response.status_code", json!(self.status)),
            ("fanfold.session", json!(self.session.as_ref().map(|session| &session.0))),
            ("fanfold.format", json!(self.format)),
            ("fanfold.outcome", json!(self.outcome.name())),
            ("fanfold.exit", json!(exit.name())),
            ("fanfold.tokens.came", json!(snapshot.map(|snapshot| snapshot.came))),
            ("fanfold.tokens.sent", json!(snapshot.map(|snapshot| snapshot.sent))),
        ];
        let mut spans = vec![Span {
            context,
            parent: self.parent_span.map(|parent| parent.span),
            name: format!("chat {}", self.model).trim_end().to_owned(),
            kind: SpanKind::Server,
            started: wall_time(self.started),
            duration: self.started.elapsed(),
            attributes,
            is_error,
        }];
        let timings = self.timings.iter();
        spans.extend(
            timings.map(|(name, started, duration)| child(name, SpanKind::Internal, *started, *duration)),
        );
        if let Some(called) = self.called {
            let all = called.elapsed();
            let first = self.first_byte.unwrap_or(all);
            spans.push(child("first byte", SpanKind::Client, called, first));
            if self.first_byte.is_some() {
                let rest = all.saturating_sub(first);
                spans.push(child("stream", SpanKind::Client, called + first, rest));
            }
        }
        spans
    }
}
