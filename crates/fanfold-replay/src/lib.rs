//! Recorded conversations through policies: what would have been sent, what it would have held, what it would have cost.
//!
//! No model is called. At each recorded reply the policy makes the view that would have been sent, and the reply itself
//! says what it needed: paths, identifiers, values and lines that it used and that had been said before.

mod record; //     a recorded conversation
mod text; //       words and boundaries
mod message; //    a message as it is measured
mod atoms; //      what a reply took from what it was sent
mod trajectory; // all that does not depend on the policy
mod readable; //   what survives in rewritten text
mod recalled; //   what handles bring back
mod sent; //       what a provider would say
mod sums; //       what is added up
mod run; //        reply by reply
mod table; //      outcomes added up

pub use atoms::{Class, Known};
pub use record::{Record, RecordError, sample};
pub use run::{Outcome, Terms, replay};
pub use sums::{DISTANCES, Part, Sums, share};
pub use table::{Row, Shares, rows};
