//! The models that may write summaries.

use std::sync::Arc;

use fanfold_core::Tokens;
use fanfold_provider::{ModelAnswer, ModelPrompt, ProviderError};

/// Answers prompts of summary jobs.
pub trait SummaryWriter: Send + Sync {
    /// Sends a prompt and waits for the answer.
    fn write(&self, prompt: &ModelPrompt) -> Result<ModelAnswer, ProviderError>;
}

#[cfg(feature = "client")]
impl SummaryWriter for fanfold_provider::ModelClient {
    fn write(&self, prompt: &ModelPrompt) -> Result<ModelAnswer, ProviderError> {
        self.send_blocking(prompt)
    }
}

/// A model that may write summaries.
#[derive(Clone)]
pub struct SummaryModel {
    /// The name of the model.
    pub model: String,
    /// Its server, for messages.
    pub server: String,
    /// Its context window.
    pub window: Tokens,
    /// The client that calls it.
    pub writer: Arc<dyn SummaryWriter>,
}

impl SummaryModel {
    /// The key under which backoffs are recorded: the same model on another server has its own.
    pub(crate) fn key(&self) -> String {
        format!("{} at {}", self.model, self.server)
    }
}

/// The models that may write summaries, in call order.
#[derive(Clone, Default)]
pub struct SummaryModels {
    /// The summary model, then the main model. If empty, no summaries are written.
    pub models: Vec<SummaryModel>,
    /// If true, a failed summary leaves the session unchanged. If false, a requested fold goes ahead with the
    /// record alone.
    pub abort_on_failure: bool,
}
