//! What the engine promises.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod setting; //        engines, terms and bodies for tests
#[allow(dead_code, reason = "the store's tests use all of it")]
#[path = "../../../fanfold-store/tests/it/cluster.rs"]
mod cluster; //        a PostgreSQL server for as long as the tests run
mod faulty; //         a store that fails once
mod requests; //       what leaves, and how it is made again
mod past; //           each thing behind its message
mod undone; //         what no longer holds after a restore or an overflow
mod walks; //          whatever happens, following and replaying say the same
mod dress; //          messages are the same whatever their cache marks
mod beside; //         recalls that a client was not shown
mod recognise; //      which session a body belongs to
mod errands; //        summaries by a model, and all that may go wrong
mod provider; //       refusals, and what the provider counted
mod memory; //         what was recalled, at the end of what leaves
mod offer; //          how the model may open folds; looking on; being late
mod effects; //        whatever fails, nothing acknowledged is lost
mod lineage; //        forks, rewinds, rotations, and what goes
mod anywhere; //       handles without their session, and how sessions stand
mod server; //         the same on PostgreSQL
mod transfer; //       sessions written down, and brought elsewhere
mod models; //         models that change, limits, a room that fills
mod contract; //       ours is one engine among others
mod hermes_defects; // what users of another engine suffer from
