//! Summaries that a model writes beside the digest.
//!
//! The digest needs no model and is all that a view needs. A summary is an errand: what is to be said to a model, what is
//! done with its answer, and where the words stand if they are good. If no answer ever comes, nothing is missing.

mod sections; // the thirteen headings
mod veil; //     what must not leave, taken out first
mod material; // what is shown to the model, in chunks
mod critical; // what must not be missing in its answer
mod wording; //  what it is asked
mod refusal; //  whether an answer is none
mod quotes; //   words in an answer that are said to be the user's
mod judge; //    what is wrong with an answer
mod complete; // what is added to a good one
mod errand; //   the questions, one after another

pub use crate::fold::summary_placement::{Placed, Placing};
pub use errand::{Asked, Errand, Next, Wish};
pub use judge::Flaw;
pub use sections::HEADINGS;
pub use veil::Veil;

pub use crate::model::summary::Summary;
