//! Summaries by a model: by writer, with their sizes, flaws and fallbacks.
//!
//! ```text
//! call a model --> summary_flawed (not a valid summary)       --> call it again, or the next one
//!              --> summary_fell_back (no answer, or none valid) --> the main model, or the record alone
//!              --> summary_written
//! ```

use std::collections::BTreeMap;

use fanfold_core::Tokens;
use fanfold_store::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Meter;
use super::status::{count, mean};

/// The writer of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Writer {
    /// The model configured for summaries.
    Summary,
    /// The model of the conversation.
    Main,
    /// No model: the view has only the record.
    Digest,
}

impl Writer {
    /// The name in metric labels.
    pub fn name(self) -> &'static str {
        match self {
            Writer::Summary => "summary",
            Writer::Main => "main",
            Writer::Digest => "digest",
        }
    }
}

/// Counts of summaries by a model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SummaryTotals {
    /// Summaries by writer: `summary`, `main`.
    pub by: BTreeMap<String, u64>,
    /// Their sizes in tokens, added up.
    pub tokens: u64,
    /// The average size in tokens.
    pub tokens_each: f64,
    /// Answers that were not valid summaries, by flaw.
    pub flaws: BTreeMap<String, u64>,
    /// Fallbacks by replacement: `main`, `digest`.
    pub fallbacks: BTreeMap<String, u64>,
    /// Fallbacks by class of the fault.
    pub failures: BTreeMap<String, u64>,
}

impl Meter {
    /// Counts a summary that was written.
    pub fn summary_written(&self, session: &SessionId, writer: Writer, tokens: Tokens) {
        self.counters.summary_written(writer.name(), tokens.0);
        let mut book = self.book();
        count(&mut book.totals.summaries.by, writer.name());
        book.totals.summaries.tokens += tokens.0;
        if let Some(entry) = book.sessions.get(session) {
            entry.status.summaries += 1;
        }
    }

    /// Counts an answer that was not a valid summary, by the name of its flaw.
    pub fn summary_flawed(&self, flaw: &'static str) {
        self.counters.summary_flawed(flaw);
        count(&mut self.book().totals.summaries.flaws, flaw);
    }

    /// Counts a writer that failed, by the name of the fault and the writer that replaces it.
    pub fn summary_fell_back(&self, why: &'static str, to: Writer) {
        self.counters.summary_fell_back(why, to.name());
        let summaries = &mut self.book().totals.summaries;
        count(&mut summaries.fallbacks, to.name());
        count(&mut summaries.failures, why);
    }
}

impl SummaryTotals {
    pub(super) fn with_average(&self) -> SummaryTotals {
        let tokens_each = mean(self.tokens, self.by.values().sum());
        SummaryTotals { tokens_each, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_summaries_flaws_and_fallbacks() {
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
