//! Summaries written by a model, beside the turns: nothing waits for them, and nothing is wrong without them.
//!
//! What is asked, and whether an answer will do, is the core's. Here are the effects: who is asked, who rests after a
//! failure, what is noted, and what people are told.

mod fallback; // which model is called next, and the meaning of failures
mod models; //   the models that may be called
mod report; //   outcomes for people and logs
mod attempts; // a job run to its end
mod lock; //     one job per session at a time
mod job; //      the job of a stored session

pub use attempts::Progress;
pub use fallback::Rest;
pub use job::{Pending, Wanted, summarise_alone};
pub use models::{Way, Ways, Writer};
pub use report::{Ended, Missed, Written};
