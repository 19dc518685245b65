//! The models that may be asked for a summary, and what opens them.

use std::sync::Arc;

use fanfold_core::Tokens;
use fanfold_provider::{ModelAnswer, ModelClient, ModelPrompt, ProviderError};

/// Writes what it is asked for: one question, one answer.
pub trait Writer: Send + Sync {
    /// Asks, and waits for the answer.
    fn write(&self, prompt: &ModelPrompt) -> Result<ModelAnswer, ProviderError>;
}

impl Writer for ModelClient {
    fn write(&self, prompt: &ModelPrompt) -> Result<ModelAnswer, ProviderError> {
        self.send_blocking(prompt)
    }
}

/// A model that may be asked.
#[derive(Clone)]
pub struct Way {
    /// The model.
    pub model: String,
    /// Where it is, for a person.
    pub place: String,
    /// How much it reads at once.
    pub window: Tokens,
    /// Who asks it.
    pub writer: Arc<dyn Writer>,
}

impl Way {
    /// What tells it from others: another model, or another place, is another one.
    pub(crate) fn name(&self) -> String {
        format!("{} at {}", self.model, self.place)
    }
}

/// The models in the order in which they are asked.
#[derive(Clone, Default)]
pub struct Ways {
    /// The summary model, then the main model. Without any, no summary is written.
    pub ways: Vec<Way>,
    /// Whether a summary that fails leaves everything as it was, instead of the digest standing alone.
    pub aborts: bool,
}
