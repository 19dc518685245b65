//! Sessions: their state in memory, and what users do with them.

pub(crate) mod state; //   a session replayed to its newest message
pub(crate) mod cache; //   the sessions used last
mod unfolded; //           messages that are whole in the current view
pub(crate) mod status; //  fill level, folds and pins
pub(crate) mod last_window; // the last window recorded for a session
pub(crate) mod labels; //  titles, goals, pins
pub(crate) mod checkpoints; // rewind, redo, checkpoints
mod lineage; //            forks, rotations, the newest session of a line
pub(crate) mod retention; // deletion of old sessions
