//! What folding has done to a conversation, in numbers.

use crate::fold::ledger::Ledger;
use crate::fold::receipt::Receipt;
use crate::model::tokens::Tokens;
use crate::model::transcript::Transcript;

/// What folding has done to a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Metrics {
    /// Turns: a person's words and the steps that answer them.
    pub n_turns: usize,
    /// Steps of the model.
    pub n_steps: usize,
    /// Folds.
    pub n_folds: usize,
    /// Of those, folds that won less than a tenth.
    pub n_weak: usize,
    /// All that was said.
    pub transcript: Tokens,
    /// The view as it is.
    pub view: Tokens,
    /// What the views cost before their folds, added up.
    pub before: Tokens,
    /// What they cost after.
    pub after: Tokens,
    /// What the provider had to read anew for them.
    pub rewritten: Tokens,
    /// Summaries that a model wrote.
    pub n_summaries: usize,
    /// What the one that stands in the view costs.
    pub summary: Tokens,
}

impl Metrics {
    /// The numbers of a conversation.
    pub fn of(transcript: &Transcript, ledger: &Ledger) -> Metrics {
        let receipts = ledger.receipts();
        let sum = |of: fn(&Receipt) -> Tokens| receipts.iter().map(of).sum();
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

    /// What a fold takes out of the view, on average.
    pub fn saved_per_fold(&self) -> f64 {
        share(self.before.0 - self.after.0.min(self.before.0), self.n_folds as u64)
    }

    /// What a fold leaves of the view, on average: 0.4 is two fifths. One where nothing was folded.
    pub fn ratio(&self) -> f64 {
        if self.before == Tokens::ZERO { 1.0 } else { share(self.after.0, self.before.0) }
    }

    /// What the view is of all that was said.
    pub fn whole_ratio(&self) -> f64 {
        if self.transcript == Tokens::ZERO { 1.0 } else { share(self.view.0, self.transcript.0) }
    }

    /// How many folds there are for a hundred turns.
    pub fn folds_per_100_turns(&self) -> f64 {
        share(self.n_folds as u64 * 100, self.n_turns as u64)
    }
}

/// A number by another; nothing by nothing is nothing.
fn share(of: u64, by: u64) -> f64 {
    if by == 0 { 0.0 } else { of as f64 / by as f64 }
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
    fn numbers_are_those_of_the_receipts() {
        let budget = Budget::with_reserve(Tokens(300), Tokens::ZERO);
        let mut session = Session::new(Policy::fanfold(), budget, &Words);
        let of = |session: &Session<'_>| Metrics::of(session.transcript(), session.ledger());
        assert_eq!((of(&session).ratio(), of(&session).folds_per_100_turns()), (1.0, 0.0));
        for i in 0..20 {
            let words = "some words of a result that is long enough to be worth folding ".repeat(3);
            let text =
                format!("user    ask {i}\ncall    read file_{i}.rs\nresult  {words}{i}\nsay     done {i}");
            for entry in parse(&text).expect("the notation is right") {
                session.append(entry);
            }
        }
        session.view().expect("it fits");
        let metrics = of(&session);
        let receipts = session.ledger().receipts();
        let won: u64 = receipts.iter().map(|receipt| receipt.saved().0).sum();
        assert!(metrics.n_folds > 1 && metrics.n_folds == receipts.len());
        assert_eq!(metrics.n_turns, 20);
        assert_eq!(metrics.saved_per_fold(), won as f64 / receipts.len() as f64);
        assert_eq!(metrics.folds_per_100_turns(), receipts.len() as f64 * 5.0);
        assert!(metrics.ratio() < 0.9 && metrics.whole_ratio() < 0.5, "{metrics:?}");
    }
}
