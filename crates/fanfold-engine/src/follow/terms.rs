//! The settings of a fold: policy, budget, counter, prices, engine.

use fanfold_core::{Budget, Count, EngineFactory, Policy, Prices};
use fanfold_wire::Format;

use crate::log::recall_offer::RecallOffer;

/// Everything that decides how a conversation is folded.
#[derive(Clone)]
pub struct Terms {
    /// The engine that folds it.
    pub engine: EngineFactory,
    /// The content that may be folded.
    pub policy: Policy,
    /// The window and the reserve.
    pub budget: Budget,
    /// The model's prices, if they are known and should decide when to fold.
    pub prices: Option<Prices>,
    /// The token counter. Counters are few and are never freed.
    pub counter: &'static dyn Count,
    /// The format of the conversation, if the settings name one.
    pub format: Option<Format>,
    /// A topic whose content is folded less; empty if there is no such topic.
    pub focus: String,
    /// Notes about defaults that were assumed, for a person.
    pub assumed: Vec<String>,
    /// The host's settings as text. The host can restore these terms from it, except for the budget. It is stored
    /// with the session; the engine only compares it for equality.
    pub described: String,
}

impl Terms {
    /// These terms, with the hint of a recall offer instead of the policy's recall instruction.
    pub(crate) fn with_offer(&self, offer: &RecallOffer) -> Terms {
        let mut terms = self.clone();
        if let Some(hint) = &offer.hint {
            terms.policy.recall = hint.clone().into();
        }
        terms
    }
}
