//! A conversation in memory: changes in, a view out.

pub(crate) mod terms; //               policy, budget, counter and prices of a conversation
pub(crate) mod session_budget; //      the budget after refusals and the provider's token counts
pub(crate) mod parallel; //            a parallel map for counting and scanning
pub(crate) mod folded_conversation; // a conversation and the engine that folds it
pub(crate) mod recall_offer; //        the recall tool or hint offered to the model
