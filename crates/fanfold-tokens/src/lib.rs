//! Token counters, one per family of models, and the table of models.

mod models; //   window, longest answer and vocabulary of each model
mod counter; //  the counter of a model
mod exact; //    counts with a public vocabulary
mod estimate; // counts for models whose vocabulary is not public
#[cfg(feature = "tokenizer-json")]
mod json; //     counts with a model's own tokenizer.json

pub use counter::{Counter, counter_for};
pub use estimate::Estimate;
pub use exact::{Exact, cl100k, o200k};
#[cfg(feature = "tokenizer-json")]
pub use json::{TokenizerError, TokenizerJson};
pub use models::{Family, Model, Models};
