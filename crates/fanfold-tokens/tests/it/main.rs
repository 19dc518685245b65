//! What this crate promises about counts.

mod agreement; // the fast counters against the crate they are built on
mod golden; //    against counts made by Python
mod hostile; //   against text made to be slow
