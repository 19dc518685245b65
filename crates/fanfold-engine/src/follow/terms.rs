//! What a conversation is folded by: policy, budget, counter, prices, engine.

use fanfold_core::{Budget, Count, EngineFactory, Policy, Prices};
use fanfold_wire::Format;

/// Everything that decides how a conversation is folded.
#[derive(Clone)]
pub struct Terms {
    /// The engine that folds it.
    pub engine: EngineFactory,
    /// What may be folded.
    pub policy: Policy,
    /// The window and the reserve.
    pub budget: Budget,
    /// The model's prices, if they are known and should decide when to fold.
    pub prices: Option<Prices>,
    /// The token counter. Counters are few and are never freed.
    pub counter: &'static dyn Count,
    /// The format of the conversation, if the settings name one.
    pub format: Option<Format>,
    /// A topic that is kept in more detail; empty for none.
    pub focus: String,
    /// Notes about defaults that were assumed, for a person.
    pub assumed: Vec<String>,
    /// The host's settings in a form from which it can restore these terms, except for the budget. It is stored with
    /// the session; the engine only compares it for equality.
    pub described: String,
}
