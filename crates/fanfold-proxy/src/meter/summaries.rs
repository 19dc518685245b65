//! Summaries by a model: who wrote them, how long they are, and what came instead.
//!
//! Whoever has one written tells it here, at three moments:
//!
//! ```text
//! ask a model --> summary_flawed (an answer that is none)    --> ask again, or the next
//!             --> summary_fell_back (no answer, or no good one) --> the main model, or the digest
//!             --> summary_written
//! ```

use std::collections::BTreeMap;

use fanfold_core::Tokens;
use fanfold_store::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Meter;

/// Who writes a summary, or stands in for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writer {
    /// The model that is set for summaries.
    Summary,
    /// The model of the conversation.
    Main,
    /// Nobody: the digest needs no model.
    Digest,
}

impl Writer {
    /// The word for it, as labels have it.
    pub fn name(self) -> &'static str {
        match self {
            Writer::Summary => "summary",
            Writer::Main => "main",
            Writer::Digest => "digest",
        }
    }
}

/// Figures of summaries, by the words of their labels.
#[derive(Debug, Clone, Default)]
pub(super) struct SummarySums {
    by: BTreeMap<&'static str, u64>,
    tokens: u64,
    flaws: BTreeMap<&'static str, u64>,
    fallbacks: BTreeMap<&'static str, u64>,
    failures: BTreeMap<&'static str, u64>,
}

/// Figures of summaries by a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SummaryTotals {
    /// Summaries written, by who wrote them: `summary`, `main`.
    pub by: BTreeMap<String, u64>,
    /// What they cost in tokens, added up.
    pub tokens: u64,
    /// What a summary costs in tokens, on average.
    pub tokens_each: f64,
    /// Answers that were no good summary, by what was wrong with them.
    pub flaws: BTreeMap<String, u64>,
    /// How often another had to stand in: `main`, `digest`.
    pub fallbacks: BTreeMap<String, u64>,
    /// Why, by the class of the fault.
    pub failures: BTreeMap<String, u64>,
}

impl Meter {
    /// A summary was written and holds: by whom, and what it costs.
    pub fn summary_written(&self, session: &SessionId, by: Writer, tokens: Tokens) {
        self.counters.summary_written(by.name(), tokens.0);
        let mut book = self.book();
        *book.sums.summaries.by.entry(by.name()).or_default() += 1;
        book.sums.summaries.tokens += tokens.0;
        if let Some(known) = book.sessions.get(session) {
            known.n_summaries += 1;
        }
    }

    /// An answer was no good summary: what was wrong with it, in one of a few fixed words.
    pub fn summary_flawed(&self, flaw: &'static str) {
        self.counters.summary_flawed(flaw);
        *self.book().sums.summaries.flaws.entry(flaw).or_default() += 1;
    }

    /// No summary came from whom it was asked of: why, in one of a few fixed words, and who stands in.
    pub fn summary_fell_back(&self, why: &'static str, to: Writer) {
        self.counters.summary_fell_back(why, to.name());
        let mut book = self.book();
        *book.sums.summaries.fallbacks.entry(to.name()).or_default() += 1;
        *book.sums.summaries.failures.entry(why).or_default() += 1;
    }
}

impl SummarySums {
    pub(super) fn totals(&self) -> SummaryTotals {
        let named = |counts: &BTreeMap<&'static str, u64>| {
            counts.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect()
        };
        let n_written: u64 = self.by.values().sum();
        SummaryTotals {
            by: named(&self.by),
            tokens: self.tokens,
            tokens_each: super::sums::mean(self.tokens, n_written),
            flaws: named(&self.flaws),
            fallbacks: named(&self.fallbacks),
            failures: named(&self.failures),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_summaries_is_counted() {
        let meter = Meter::new(fanfold_replay::PriceTable::built_in());
        let session = SessionId("s".to_owned());
        meter.summary_flawed("refusal");
        meter.summary_fell_back("flawed", Writer::Main);
        meter.summary_written(&session, Writer::Main, Tokens(900));
        meter.summary_written(&session, Writer::Summary, Tokens(1100));
        meter.summary_fell_back("timeout", Writer::Digest);
        let totals = meter.status().totals.summaries;
        assert_eq!((totals.tokens, totals.tokens_each), (2000, 1000.0));
        assert_eq!((totals.by["main"], totals.by["summary"]), (1, 1));
        assert_eq!((totals.fallbacks["main"], totals.fallbacks["digest"]), (1, 1));
        assert_eq!((totals.failures["timeout"], totals.flaws["refusal"]), (1, 1));
        let text = meter.prometheus();
        for line in [
            r#"fanfold_summaries_total{by="main"} 1"#,
            r#"fanfold_summary_flaws_total{flaw="refusal"} 1"#,
            r#"fanfold_summary_fallbacks_total{why="timeout",to="digest"} 1"#,
            "fanfold_summary_tokens_sum 2000",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
