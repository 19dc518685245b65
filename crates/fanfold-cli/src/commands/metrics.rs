//! `fanfold inspect --metrics`: what folding does to a conversation, in numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fanfold_core::{Engine, Metrics, Tokens};
use fanfold_store::EventRow;
use serde_json::{Value, json};

use crate::terminal::{paint, style};

/// The numbers of a conversation.
pub(crate) struct Numbers {
    metrics: Metrics,
    happened: Option<Happened>,
}

/// What happened to a session that is kept, by the kinds of its events.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Happened {
    n_requests: usize,
    n_refused: usize,
    /// How often it began anew: by another model or other settings.
    n_begun: usize,
    n_summaries: usize,
    /// How often a model that was asked for a summary gave none, or none that would do.
    n_missed: usize,
    last_missed: Option<String>,
    /// How often another model stood in for one, or the digest did.
    n_fallbacks: usize,
    /// What was wrong with answers that were no good summary, and how often.
    flaws: BTreeMap<String, usize>,
}

impl Happened {
    pub(crate) fn of(events: &[EventRow]) -> Happened {
        let mut happened = Happened::default();
        for event in events {
            match event.kind.as_str() {
                "request" => happened.n_requests += 1,
                "refused" => happened.n_refused += 1,
                "began" => happened.n_begun += 1,
                "summarised" => happened.n_summaries += 1,
                "rested" => {
                    let body: Value = serde_json::from_str(&event.body).unwrap_or_default();
                    happened.last_missed = body["rest"]["why"].as_str().map(str::to_owned);
                }
                "tried" => happened.tried(&serde_json::from_str(&event.body).unwrap_or_default()),
                _ => {}
            }
        }
        happened
    }

    fn tried(&mut self, body: &Value) {
        let words = |field: &str| body[field].as_array().into_iter().flatten().filter_map(Value::as_str);
        let n_missed = words("missed").count();
        self.n_missed += n_missed;
        self.n_fallbacks += usize::from(n_missed > 0);
        words("flaws").for_each(|flaw| *self.flaws.entry(flaw.to_owned()).or_default() += 1);
    }

    fn flaws_in_words(&self) -> String {
        let each: Vec<_> = self.flaws.iter().map(|(flaw, n)| format!("{flaw} {n}")).collect();
        let which = if each.is_empty() { String::new() } else { format!(": {}", each.join(", ")) };
        format!("things wrong with answers that were no good summary{which}")
    }

    fn rows(&self) -> [(&'static str, String, String); 5] {
        let missed =
            self.last_missed.as_ref().map_or_else(String::new, |why| format!("; the last time: {why}"));
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
                format!("times another model or the digest stood in: {} gave none{missed}", self.n_missed),
            ),
            ("flawed", self.flaws.values().sum::<usize>().to_string(), self.flaws_in_words()),
        ]
    }
}

impl Numbers {
    pub(crate) fn of(session: &dyn Engine, happened: Option<Happened>) -> Numbers {
        Numbers { metrics: Metrics::of(session.transcript(), session.ledger()), happened }
    }

    pub(crate) fn page(&self) -> String {
        let metrics = &self.metrics;
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let rows = [
            ("turns", metrics.n_turns.to_string(), format!("{} steps of the model", metrics.n_steps)),
            (
                "folds",
                metrics.n_folds.to_string(),
                format!("{} of them won less than a tenth", metrics.n_weak),
            ),
            (
                "per 100",
                format!("{:.1}", metrics.folds_per_100_turns()),
                "folds for a hundred turns".to_owned(),
            ),
            (
                "saved",
                Tokens(metrics.saved_per_fold().round() as u64).to_string(),
                "tokens that a fold takes out".to_owned(),
            ),
            ("ratio", percent(metrics.ratio()), "of its view that a fold leaves".to_owned()),
            (
                "view",
                percent(metrics.whole_ratio()),
                format!("of all that was said: {} of {} tokens", metrics.view, metrics.transcript),
            ),
            (
                "summaries",
                metrics.n_summaries.to_string(),
                format!("by a model; the one in the view has {} tokens", metrics.summary),
            ),
            (
                "rewrote",
                metrics.rewritten.to_string(),
                "tokens that folds had the provider read anew".to_owned(),
            ),
        ];
        let mut out = String::new();
        let kept = self.happened.iter().flat_map(Happened::rows);
        for (name, number, remark) in rows.into_iter().chain(kept) {
            let _ = writeln!(out, "{name:<11}{number:>10}  {}", paint(style::DIM, remark));
        }
        out
    }

    pub(crate) fn json(&self) -> Value {
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
            "whole_ratio": rounded(metrics.whole_ratio()),
            "transcript": metrics.transcript.0,
            "view": metrics.view.0,
            "rewritten": metrics.rewritten.0,
            "summaries": metrics.n_summaries,
            "summary_tokens": metrics.summary.0,
        });
        if let Some(happened) = &self.happened {
            all["requests"] = happened.n_requests.into();
            all["refused"] = happened.n_refused.into();
            all["begun"] = happened.n_begun.into();
            all["summaries"] = happened.n_summaries.into();
            all["fallbacks"] = happened.n_fallbacks.into();
            all["missed"] = happened.n_missed.into();
            all["flaws"] = json!(happened.flaws);
            all["last_fallback"] = json!(happened.last_missed);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfold_store::Millis;

    #[test]
    fn what_happened_is_counted_by_its_kind() {
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
        let happened = Happened::of(&events);
        assert_eq!((happened.n_requests, happened.n_summaries), (2, 1));
        assert_eq!((happened.n_fallbacks, happened.n_missed), (2, 3));
        assert_eq!((happened.flaws["cut"], happened.flaws["quote"]), (2, 1));
        assert_eq!(happened.last_missed.as_deref(), Some("it fell silent"));
    }
}
