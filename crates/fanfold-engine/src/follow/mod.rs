//! Conversations and sessions in memory: changes and events in, a view out.

pub(crate) mod terms; //               policy, budget, counter and prices of a conversation
pub(crate) mod session_budget; //      the budget after refusals and the provider's token counts
pub(crate) mod parallel; //            a parallel map for counting and scanning
pub(crate) mod folded_conversation; // a conversation and the engine that folds it
pub(crate) mod session_state; //       a session replayed to its newest message
pub(crate) mod session_cache; //       LRU cache of states
pub(crate) mod fold_record; //         the events of a fold
