//! What always holds, line by line, against conversations from seeds and against recorded ones.
//!
//! Each file is one promise: a `check` on one view, and the properties that are made of it. `trajectories` runs all
//! the checks over recorded conversations. `FANFOLD_FAST=1` leaves those out and draws fewer cases;
//! `FANFOLD_MANY=1` draws all of them; `FANFOLD_CASE=file` runs one that was written down.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod cases; //         cases from seeds, cut down when they fail
mod walks; //         conversations followed, message by message
mod verbatim; //      1: what people wrote is sent as they wrote it
mod paired; //        2: results and calls
mod budget; //        3: room, counts, thresholds, pressure, overflows
mod lossless; //      4: every handle opens
mod stable; //        5: a view begins with the last one
mod settled; //       6: folds stay
mod deterministic; // 7: the same values give the same bytes
mod analysis; //      7: and so without the analysis
mod running; //       8: live calls
mod newest; //        what is new stays as it is
mod arrival; //       but for what is large
mod again; //         what stands in view is not sent again
mod harmless; //      9: hostile bodies, refusals
mod transparent; //   10: what is not known passes through
mod wishes; //        pins, focus, unfold, folds by hand
mod tools; //         what a policy says of single tools
mod spacing; //       how arguments are printed changes nothing
mod regret; //        folding for economy never costs much more than not folding
mod summaries; //     a model's summary changes nothing but itself
mod errands; //       what a model is asked, and what becomes of its answer
mod condensed; //     texts made short by what they are
mod speed; //         megabytes take linear time
mod trajectories; //  all of it on recorded conversations
