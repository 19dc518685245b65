//! What is told of a request: a line in the log, and spans.

use std::time::{Duration, Instant};

use fanfold_core::thousands;
use serde_json::json;

use super::Passage;
use crate::meter::money::Money;
use crate::meter::trace::{Kind, Place, Span, wall};
use crate::meter::words::{Exit, Outcome};

impl Passage {
    /// One line for each request. Nothing of a body is in it, and nothing of a header.
    pub(super) fn log(&self, exit: Exit, money: Option<Money>) {
        let ms = |took: Option<Duration>| took.map_or(0.0, |took| (took.as_secs_f64() * 1e5).round() / 100.0);
        let sizes = self.glance.as_ref().map_or(String::new(), |glance| {
            format!("{} -> {} tokens", thousands(glance.came), thousands(glance.sent))
        });
        let used = self.used_in_all();
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
            input = used.map(|used| used.input),
            read = used.map(|used| used.read),
            output = used.map(|used| used.output),
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

    /// The request, and what was done for it.
    pub(super) fn spans(&self, place: Place, exit: Exit) -> Vec<Span> {
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
        let (glance, used) = (self.glance.as_ref(), self.used_in_all());
        let attributes = vec![
            ("gen_ai.operation.name", json!("chat")),
            ("gen_ai.request.model", json!(self.model)),
            ("gen_ai.usage.input_tokens", json!(used.map(|used| used.input))),
            ("gen_ai.usage.output_tokens", json!(used.map(|used| used.output))),
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
}
