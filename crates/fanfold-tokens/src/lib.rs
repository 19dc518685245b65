//! Token counters, one per family of models, and the table of models.

mod models; //   what is known of each model
mod counter; //  which counter it has
mod exact; //    counts as the provider does
mod split; //    text into pieces
mod block; //    many pieces at once
mod memo; //     pieces already counted
mod estimate; // counts where no vocabulary is public
mod shape; //    tokens from the shape of words
#[cfg(feature = "tokenizer-json")]
mod json; //     counts with a model's own tokenizer.json

pub use counter::{Counter, counter_for};
pub use estimate::Estimate;
pub use exact::{Cl100k, Exact, O200k, cl100k, o200k};
#[cfg(feature = "tokenizer-json")]
pub use json::{TokenizerError, TokenizerJson};
pub use models::{Family, Model, Models};
