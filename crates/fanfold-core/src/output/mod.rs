//! The result: checked views, recalled originals, metrics.

pub(crate) mod assemble;
pub(crate) mod check;
pub(crate) mod recount;
pub(crate) mod recall;
pub(crate) mod search;
pub(crate) mod pressure;
pub(crate) mod metrics;
pub(crate) mod feedback;
pub(crate) mod working_context;
