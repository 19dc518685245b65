//! Terms of folds, rules and summary models for the settings.

pub(crate) mod terms; //          policy, budget, counter and prices
mod rules_file; //                the YAML of the rule middleware
#[cfg_attr(not(feature = "network"), path = "no_summary_models.rs")]
pub(crate) mod summary_models; // the models that write summaries
