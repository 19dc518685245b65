//! The record: a readable account of folded steps, written without a model.
//!
//! ```text
//! #12 bash `python reproduce.py` → exit 1, OperationalError: no such table: jobs
//! #17 The registry is sealed at import, so the script calls setup() first.
//!   wrote reproduce.py (65 lines)
//! ```

pub(crate) mod write; // segments within a budget
pub(crate) mod standing; // changes that stand
pub(crate) mod state; //       the state after the last step
mod rows; //        outcome lines
pub(crate) mod pieces; //      pieces that may be kept
mod kinds; //       the value of lines by the kind of action
pub(crate) mod choice; //      the pieces that are kept
pub(crate) mod names; //       short names of paths and commands
pub(crate) mod layout; // the format of records
#[cfg(test)]
mod tests; //       examples
