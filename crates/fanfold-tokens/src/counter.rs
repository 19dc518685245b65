//! Chooses the counter of a model.

use fanfold_core::{Count, Frame, Tokens};

use crate::estimate::Estimate;
use crate::exact::{Cl100k, O200k, cl100k, o200k};
use crate::models::{Family, Models};

/// The counter of one model.
#[derive(Debug, Clone)]
pub enum Counter {
    /// Exact, GPT-4o and later.
    O200k(&'static O200k),
    /// Exact, GPT-3.5 and GPT-4.
    Cl100k(&'static Cl100k),
    /// A guess.
    Estimate(Estimate),
}

/// The counter of the model of this name; an estimate if its vocabulary or the model is unknown.
pub fn counter_for(model: &str, models: &Models) -> Counter {
    let estimate = |permille| Counter::Estimate(Estimate::new(model).on_o200k().scaled(permille));
    match models.find(model).map(|model| model.family) {
        Some(Family::O200k) => Counter::O200k(o200k()),
        Some(Family::Cl100k) => Counter::Cl100k(cl100k()),
        Some(Family::Estimate { permille }) => estimate(permille),
        None => estimate(1000),
    }
}

impl Counter {
    /// The counter after a request that it counted as `counted` and the provider as `reported`.
    /// An exact one stays as it is.
    pub fn corrected(self, counted: Tokens, reported: Tokens) -> Counter {
        match self {
            Counter::Estimate(estimate) => Counter::Estimate(estimate.corrected(counted, reported)),
            Counter::O200k(_) | Counter::Cl100k(_) => self,
        }
    }

    fn inner(&self) -> &dyn Count {
        match self {
            Counter::O200k(counter) => *counter,
            Counter::Cl100k(counter) => *counter,
            Counter::Estimate(estimate) => estimate,
        }
    }
}

impl Count for Counter {
    fn count(&self, text: &str) -> Tokens {
        self.inner().count(text)
    }

    fn frame(&self) -> Frame {
        self.inner().frame()
    }

    fn is_cut_at_lines(&self) -> bool {
        self.inner().is_cut_at_lines()
    }

    fn name(&self) -> &str {
        self.inner().name()
    }

    fn is_exact(&self) -> bool {
        self.inner().is_exact()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(model: &str, name: &str) {
        assert_eq!(counter_for(model, &Models::built_in()).name(), name);
    }

    #[test]
    fn the_model_decides() {
        check("openai/gpt-5.1-codex", "o200k_base");
        check("gpt-4-turbo", "cl100k_base");
        check("anthropic/claude-opus-4-5", "anthropic/claude-opus-4-5 (estimate)");
        check("my-own-model", "my-own-model (estimate)");
    }

    #[test]
    fn an_unknown_model_counts_like_o200k_until_corrected() {
        let text = "one two three four ".repeat(200);
        let counter = counter_for("my-own-model", &Models::built_in());
        let counted = counter.count(&text);
        assert_eq!(counted, o200k().count(&text));
        assert_eq!(counter.corrected(counted, Tokens(1000)).count(&text), Tokens(1000));
    }

    #[test]
    fn reports_do_not_move_an_exact_counter() {
        let counter = counter_for("gpt-5", &Models::built_in());
        assert_eq!(counter.corrected(Tokens(1000), Tokens(2000)).count("hello world"), Tokens(2));
    }
}
