//! Folding: the decision, its record in the ledger, and the passes that execute it.

pub(crate) mod step;
pub(crate) mod policy;
pub(crate) mod ledger;
pub(crate) mod originals;
pub(crate) mod draft;
pub(crate) mod protected_ranges;
pub(crate) mod passes;
pub(crate) mod segment;
pub(crate) mod gist;
pub(crate) mod economy;
pub(crate) mod summary_placement;
pub(crate) mod receipt;
pub(crate) mod overflow;
