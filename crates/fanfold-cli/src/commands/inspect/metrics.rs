//! `fanfold inspect --metrics`: what folding does to a conversation, in numbers.

use std::collections::BTreeMap;

use fanfold_core::{Engine, Metrics, Tokens};
use fanfold_store::EventRow;
use serde_json::{Value, json};

use crate::terminal::{Text, number_rows};

/// The metrics of a conversation, with the event counts of a stored session.
pub(super) struct SessionMetrics {
    metrics: Metrics,
    events: Option<EventCounts>,
}

/// The events of a stored session, counted by kind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EventCounts {
    n_requests: usize,
    n_refused: usize,
    /// Times the session was folded from its first message on, because the model or the settings changed.
    n_begun: usize,
    n_summaries: usize,
    /// Summary requests that failed or were answered with an unusable summary.
    n_failures: usize,
    last_failure: Option<String>,
    /// Times another model or the record alone was used instead.
    n_fallbacks: usize,
    /// The flaws of unusable summaries, counted by kind.
    flaws: BTreeMap<String, usize>,
}

impl EventCounts {
    pub(super) fn new(events: &[EventRow]) -> EventCounts {
        let mut counts = EventCounts::default();
        for event in events {
            let body = || serde_json::from_str::<Value>(&event.body).unwrap_or_default();
            match event.kind.as_str() {
                "request" => counts.n_requests += 1,
                "refused" => counts.n_refused += 1,
                "began" => counts.n_begun += 1,
                "summarised" => counts.n_summaries += 1,
                "rested" => counts.last_failure = body()["rest"]["why"].as_str().map(str::to_owned),
                "tried" => counts.add_attempts(&body()),
                _ => {}
            }
        }
        counts
    }

    fn add_attempts(&mut self, body: &Value) {
        let names = |field: &str| body[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        let n_failures = names("missed").count();
        self.n_failures += n_failures;
        self.n_fallbacks += usize::from(n_failures > 0);
        names("flaws").for_each(|flaw| *self.flaws.entry(flaw.to_owned()).or_default() += 1);
    }

    fn describe_flaws(&self) -> String {
        let each: Vec<_> = self.flaws.iter().map(|(flaw, n)| format!("{flaw} {n}")).collect();
        let kinds = if each.is_empty() { String::new() } else { format!(": {}", each.join(", ")) };
        format!("flaws in unusable summaries{kinds}")
    }

    fn rows(&self) -> [(&'static str, String, String); 5] {
        let last =
            self.last_failure.as_ref().map_or_else(String::new, |why| format!("; the last one: {why}"));
        [
            ("requests", self.n_requests.to_string(), "sent".to_owned()),
            ("refused", self.n_refused.to_string(), "for their length".to_owned()),
            (
                "begun",
                self.n_begun.to_string(),
                "times from the first message on: another model, other settings".to_owned(),
            ),
            (
                "fell back",
                self.n_fallbacks.to_string(),
                format!("times to another model or the record alone: {} failures{last}", self.n_failures),
            ),
            ("flawed", self.flaws.values().sum::<usize>().to_string(), self.describe_flaws()),
        ]
    }
}

impl SessionMetrics {
    pub(super) fn new(session: &dyn Engine, events: Option<EventCounts>) -> SessionMetrics {
        SessionMetrics { metrics: Metrics::new(session.transcript(), session.ledger()), events }
    }

    pub(super) fn page(&self) -> Text {
        let metrics = &self.metrics;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let rows = [
            ("turns", metrics.n_turns.to_string(), format!("{} steps of the model", metrics.n_steps)),
            ("folds", metrics.n_folds.to_string(), format!("{} saved less than a tenth", metrics.n_weak)),
            ("per 100", format!("{:.1}", metrics.folds_per_100_turns()), "folds per 100 turns".to_owned()),
            (
                "saved",
                Tokens(metrics.saved_per_fold().round() as u64).to_string(),
                "tokens saved per fold".to_owned(),
            ),
            ("ratio", percent(metrics.ratio()), "size of the view after a fold, of before".to_owned()),
            (
                "view",
                percent(metrics.view_ratio()),
                format!("of the transcript: {} of {} tokens", metrics.view, metrics.transcript),
            ),
            (
                "summaries",
                metrics.n_summaries.to_string(),
                format!("by a model; the one in the view has {} tokens", metrics.summary),
            ),
            (
                "rewrote",
                metrics.rewritten.to_string(),
                "tokens that missed the provider's cache after folds".to_owned(),
            ),
        ];
        number_rows(rows.into_iter().chain(self.events.iter().flat_map(EventCounts::rows)))
    }

    pub(super) fn json(&self) -> Value {
        let metrics = &self.metrics;
        let rounded = |number: f64| (number * 1000.0).round() / 1000.0;
        let mut all = json!({
            "turns": metrics.n_turns,
            "steps": metrics.n_steps,
            "folds": metrics.n_folds,
            "weak_folds": metrics.n_weak,
            "folds_per_100_turns": rounded(metrics.folds_per_100_turns()),
            "saved_per_fold": rounded(metrics.saved_per_fold()),
            "ratio": rounded(metrics.ratio()),
            "whole_ratio": rounded(metrics.view_ratio()),
            "transcript": metrics.transcript.0,
            "view": metrics.view.0,
            "rewritten": metrics.rewritten.0,
            "summaries": metrics.n_summaries,
            "summary_tokens": metrics.summary.0,
        });
        if let Some(events) = &self.events {
            all["requests"] = events.n_requests.into();
            all["refused"] = events.n_refused.into();
            all["begun"] = events.n_begun.into();
            all["summaries"] = events.n_summaries.into();
            all["fallbacks"] = events.n_fallbacks.into();
            all["missed"] = events.n_failures.into();
            all["flaws"] = json!(events.flaws);
            all["last_fallback"] = json!(events.last_failure);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_store::Millis;

    #[test]
    fn events_are_counted_by_kind() {
        let event = |kind: &str, body: &str| EventRow {
            seq: 0,
            at: Millis(0),
            tip: None,
            kind: kind.to_owned(),
            body: body.to_owned(),
        };
        let events = [
            event("began", "{}"),
            event("request", "{}"),
            event("rested", r#"{"who":"m","rest":{"until":1,"why":"it fell silent"}}"#),
            event("tried", r#"{"by":"n","missed":["timeout"],"flaws":["cut","quote"]}"#),
            event("tried", r#"{"by":null,"missed":["flawed","auth"],"flaws":["cut"]}"#),
            event("summarised", "{}"),
            event("dreamt", "{}"),
            event("request", "not JSON"),
        ];
        let counts = EventCounts::new(&events);
        assert_eq!((counts.n_requests, counts.n_summaries), (2, 1));
        assert_eq!((counts.n_fallbacks, counts.n_failures), (2, 3));
        assert_eq!((counts.flaws["cut"], counts.flaws["quote"]), (2, 1));
        assert_eq!(counts.last_failure.as_deref(), Some("it fell silent"));
    }
}
