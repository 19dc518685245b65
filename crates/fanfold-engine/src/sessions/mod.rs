//! The operations of users on stored sessions.

mod unfolded; //           messages that the current view contains unfolded
pub(crate) mod status; //  fill level, folds and pins
pub(crate) mod last_window; // the window and terms recorded last
pub(crate) mod labels; //  titles, goals, pins
pub(crate) mod checkpoints; // rewind, redo, checkpoints
mod lineage; //            forks, rotations, lookup by name
pub(crate) mod retention; // deletion of old sessions
