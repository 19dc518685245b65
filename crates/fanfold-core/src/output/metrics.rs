//! Statistics of the folds of a conversation.

use crate::fold::ledger::Ledger;
use crate::fold::receipt::Receipt;
use crate::model::tokens::Tokens;
use crate::model::transcript::Transcript;

/// Statistics of the folds of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metrics {
    /// The number of turns.
    pub n_turns: usize,
    /// The number of steps.
    pub n_steps: usize,
    /// The number of folds.
    pub n_folds: usize,
    /// The number of folds that saved less than a tenth of the view.
    pub n_weak: usize,
    /// The size of the transcript.
    pub transcript: Tokens,
    /// The size of the view.
    pub view: Tokens,
    /// The sum of the view sizes before each fold.
    pub before: Tokens,
    /// The sum of the view sizes after each fold.
    pub after: Tokens,
    /// The number of tokens that were not read from the provider's cache because of folds.
    pub rewritten: Tokens,
    /// The number of summaries written by a model.
    pub n_summaries: usize,
    /// The size of the summary in the view.
    pub summary: Tokens,
}

impl Metrics {
    /// Computes the statistics of a conversation.
    pub fn new(transcript: &Transcript, ledger: &Ledger) -> Metrics {
        let receipts = ledger.receipts();
        let sum = |field: fn(&Receipt) -> Tokens| receipts.iter().map(field).sum();
        let is_weak = |receipt: &&Receipt| receipt.saved().0 * 10 < receipt.before.0;
        Metrics {
            n_turns: transcript.turns().len(),
            n_steps: transcript.entries().iter().filter(|entry| entry.step().is_some()).count(),
            n_folds: receipts.len(),
            n_weak: receipts.iter().filter(is_weak).count(),
            transcript: transcript.total(),
            view: ledger.total(transcript),
            before: sum(|receipt| receipt.before),
            after: sum(|receipt| receipt.after),
            rewritten: sum(|receipt| receipt.rewritten),
            n_summaries: ledger.summaries().count(),
            summary: ledger.summary_history.tokens(),
        }
    }

    /// The average number of tokens that a fold removes from the view.
    pub fn saved_per_fold(&self) -> f64 {
        quotient(self.before.0 - self.after.0.min(self.before.0), self.n_folds as u64)
    }

    /// The average size of a view after a fold, divided by its size before; 1 without folds.
    pub fn ratio(&self) -> f64 {
        if self.before == Tokens::ZERO { 1.0 } else { quotient(self.after.0, self.before.0) }
    }

    /// The size of the view divided by the size of the transcript.
    pub fn view_ratio(&self) -> f64 {
        if self.transcript == Tokens::ZERO { 1.0 } else { quotient(self.view.0, self.transcript.0) }
    }

    /// The number of folds per hundred turns.
    pub fn folds_per_100_turns(&self) -> f64 {
        quotient(self.n_folds as u64 * 100, self.n_turns as u64)
    }
}

/// Divides two numbers. Returns zero for a divisor of zero.
fn quotient(dividend: u64, divisor: u64) -> f64 {
    if divisor == 0 { 0.0 } else { dividend as f64 / divisor as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::policy::Policy;
    use crate::model::budget::Budget;
    use crate::model::tokens::Words;
    use crate::notation::parse;
    use crate::session::Session;

    #[test]
    fn metrics_agree_with_the_receipts() {
        let budget = Budget::with_reserve(Tokens(300), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        let metrics = |session: &Session<'_>| Metrics::new(session.transcript(), session.ledger());
        assert_eq!((metrics(&session).ratio(), metrics(&session).folds_per_100_turns()), (1.0, 0.0));
        for i in 0..20 {
            let words = "some words of a result that is long enough to be worth folding ".repeat(3);
            let text =
                format!("user    ask {i}\ncall    read file_{i}.rs\nresult  {words}{i}\nsay     done {i}");
            for entry in parse(&text).expect("the notation is right") {
                session.append(entry);
            }
        }
        session.view().expect("it fits");
        let metrics = metrics(&session);
        let receipts = session.ledger().receipts();
        let saved: u64 = receipts.iter().map(|receipt| receipt.saved().0).sum();
        assert!(metrics.n_folds > 1 && metrics.n_folds == receipts.len());
        assert_eq!(metrics.n_turns, 20);
        assert_eq!(metrics.saved_per_fold(), saved as f64 / receipts.len() as f64);
        assert_eq!(metrics.folds_per_100_turns(), receipts.len() as f64 * 5.0);
        assert!(metrics.ratio() < 0.9 && metrics.view_ratio() < 0.5, "{metrics:?}");
    }
}
