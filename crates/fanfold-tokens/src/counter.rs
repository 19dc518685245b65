//! Chooses the counter of a model.

use fanfold_core::{Count, FrameCosts, Tokens};

use crate::estimate::Estimate;
use crate::exact::{Exact, cl100k, o200k};
use crate::models::{Family, Models};

/// The counter of one model.
#[derive(Debug, Clone)]
pub enum Counter {
    /// The model's own vocabulary.
    Exact(&'static Exact),
    /// The vocabulary of GPT-4o, times a factor.
    Estimate(Estimate),
}

/// The counter for a model name; an estimate if the model or its vocabulary is unknown.
pub fn counter_for(model: &str, models: &Models) -> Counter {
    let estimate = |permille| Counter::Estimate(Estimate::new(model, permille));
    match models.find(model).map(|model| model.family) {
        Some(Family::O200k) => Counter::Exact(o200k()),
        Some(Family::Cl100k) => Counter::Exact(cl100k()),
        Some(Family::Estimate { permille }) => estimate(permille),
        None => estimate(1000),
    }
}

impl Counter {
    fn inner(&self) -> &dyn Count {
        match self {
            Counter::Exact(counter) => *counter,
            Counter::Estimate(estimate) => estimate,
        }
    }
}

impl Count for Counter {
    fn count(&self, text: &str) -> Tokens {
        self.inner().count(text)
    }

    fn frame(&self) -> FrameCosts {
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
    fn the_counter_follows_from_the_model_name() {
        check("openai/gpt-5.1-codex", "o200k_base");
        check("gpt-4-turbo", "cl100k_base");
        check("anthropic/claude-opus-4-5", "anthropic/claude-opus-4-5 (estimate)");
        check("my-own-model", "my-own-model (estimate)");
    }

    #[test]
    fn an_unknown_model_counts_like_o200k() {
        let text = "one two three four ".repeat(200);
        let counter = counter_for("my-own-model", &Models::built_in());
        assert_eq!(counter.count(&text), o200k().count(&text));
    }
}
