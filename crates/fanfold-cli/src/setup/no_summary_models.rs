//! Replaces `summary_models` in a program without the feature `network`.

use fanfold_engine::SummaryModels;

use crate::failure::{Failure, Result};
use crate::settings::Options;

/// Fails if the settings name a model.
pub(crate) fn ways(options: &Options) -> Result<SummaryModels> {
    match options.summary.model {
        None => Ok(SummaryModels::default()),
        Some(_) => Err(Failure::new(
            "this build cannot request a summary",
            "build it with the feature `network`, or leave out [summary]",
        )),
    }
}
