//! Summaries written by a model in the background. No request waits for one, and every view is complete without it.
//!
//! The core writes the questions and validates the answers. This module has the effects: it calls the models, falls
//! back to the next one, records backoffs, and reports outcomes.

mod fallback; // which model is called next, and the meaning of failures
mod models; //   the models that may be called
mod report; //   outcomes for people and logs
mod attempts; // a job run to its end
mod job; //      the job of a stored session

pub use attempts::SummaryProgress;
pub use job::{PendingSummary, SummaryTask, summarise_unstored};
pub use models::{SummaryModel, SummaryModels, SummaryWriter};
pub use report::{JobOutcome, ModelFailure, WrittenSummary};
