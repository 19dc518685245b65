//! The contract of the engine.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setup; //            engines, terms and bodies for tests
#[allow(dead_code, reason = "the store's tests use all of it")]
#[path = "../../../fanfold-store/tests/it/cluster.rs"]
mod cluster; //          a PostgreSQL server that runs during the tests
mod faulty_store; //     a store that fails once, or until it is repaired
mod requests; //         requests are rebuilt byte for byte
mod event_order; //      events apply after their message
mod undo; //             restored checkpoints, and windows that are too small for any view
mod random_walks; //     cached and replayed sessions are equal after random operations
mod cache_marks; //      cache marks and spellings do not change messages
mod hidden_recalls; //   recalls that were hidden from the client
mod recognise; //        which session a body belongs to
mod summaries; //        summaries by a model, and their failures
mod provider_reports; // refusals, token counts and cache usage of the provider
mod memory; //           the memory block of a request
mod recall_offer; //     the offered recall tool; observed and late requests
mod store_failures; //   failures of the store lose no acknowledged data
mod outage; //           requests are folded in memory while the store fails
mod lineage; //          forks, rewinds, rotations, deletion
mod recall_anywhere; //  handles without a session id, and the status of sessions
mod postgres; //         the same contract on PostgreSQL
mod export_import; //    exported and imported sessions
mod model_changes; //    changes of the model, learnt limits, pressure notices
mod engine_contract; //  the built-in engine and the example engine pass one suite
mod hermes_defects; //   defects found in another engine
