//! Summaries written by a model, beside the turns: nothing waits for them, and nothing is wrong without them.
//!
//! What is asked, and whether an answer will do, is the core's. Here are the effects: who is asked, who rests after a
//! failure, what is noted, and what people are told.

mod chain; // who is asked, and what a failure means
mod ways; //  the models that may be asked
mod told; //  how it ended, in words
mod drive; // an errand run to its end
mod lock; //  one for a session at a time
mod run; //   of a session that is kept

pub use chain::Rest;
pub use drive::Progress;
pub use run::{Pending, Wanted, summarise_alone};
pub use told::{Ended, Missed, Written};
pub use ways::{Way, Ways, Writer};
