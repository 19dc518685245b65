//! What a conversation is folded by.

use fanfold_core::{Budget, Count, Policy, Prices};
use fanfold_wire::Format;

/// What a conversation is folded by.
#[derive(Clone)]
pub struct Terms {
    /// What may be folded.
    pub policy: Policy,
    /// How much room there is.
    pub budget: Budget,
    /// What the model is charged at, if that is known and counts.
    pub prices: Option<Prices>,
    /// Counters are few and live as long as the program.
    pub counter: &'static dyn Count,
    /// The format of the conversation, if it is known.
    pub format: Option<Format>,
    /// A topic of which more is kept; none if it is empty.
    pub focus: String,
    /// What was assumed because nobody said it, for a person.
    pub assumed: Vec<String>,
    /// What a host makes these terms of again, all but the budget. It is kept with the session and means nothing to
    /// the engine but this: the same words are the same terms.
    pub described: String,
}
