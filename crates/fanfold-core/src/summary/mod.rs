//! Summaries written by a model, shown in addition to the record.
//!
//! The record needs no model and is sufficient for a view. A summary is a job: the requests to send to a model, the
//! checks of its answers, and the placement of the result. Without an answer, nothing is missing.

mod sections; //   the thirteen sections
mod redaction; //  redacts secrets before anything is shown
mod material; //   what the model is shown, in chunks
mod critical; //   references that the summary must contain
mod prompt; //     the prompts
mod refusal; //    detects refusals
mod quotes; //     detects invented user quotes
mod validation; // checks answers
mod complete; //   adds missing references
mod job; //        the requests in order

pub use crate::fold::summary_placement::{PlacedSummary, PlacementChange};
pub use job::{NextStep, SummaryJob, SummaryOptions, SummaryRequest};
pub use redaction::RedactFn;
pub use sections::HEADINGS;
pub use validation::Flaw;

pub use crate::model::summary::Summary;
