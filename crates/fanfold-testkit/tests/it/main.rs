//! Property tests of the invariants, on generated and on recorded conversations.
//!
//! Each file tests one invariant. Most have a `check` of a single view and properties that use it; `trajectories`
//! runs these checks on recorded conversations. `FANFOLD_FAST=1` skips the recorded conversations and runs fewer
//! cases, `FANFOLD_MANY=1` runs all cases, and `FANFOLD_CASE=FILE` runs the case in a file.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod cases; //            generated cases, shrunk when they fail
mod drivers; //          append a conversation message by message and inspect each view
mod user_text; //        1: user messages are sent unchanged
mod call_pairing; //     2: each result follows its call
mod budget; //           3: room, counts, thresholds, pressure, overflows
mod lossless; //         4: every handle can be recalled
mod record; //           the lines of a record stand in their steps
mod state; //            the statements of the state have their evidence
mod stable_prefix; //    5: a view begins with the previous one
mod fold_persistence; // 6: folds stay
mod determinism; //      7: the same input gives the same bytes
mod analysis; //         7: also without the analysis
mod running_calls; //    8: running calls are not folded
mod protected_tail; //   new entries stay whole
mod large_results; //    except large results
mod repeated_lines; //   lines that are already in the view are not sent again
mod malformed_input; //  9: hostile bodies, refusals
mod pass_through; //     10: unknown fields and parts pass through
mod user_commands; //    pins, focus, unfold, requested folds
mod tool_rules; //       per-tool rules of policies
mod argument_spacing; // the spacing of arguments changes nothing
mod economy_cost; //     folding for economy never costs more than not folding
mod summaries; //        a summary of a model changes only its own note
mod summary_jobs; //     prompts for summaries, and the validation of the answers
mod condensing; //       condensed texts
mod linear_time; //      megabytes take linear time
mod false_masks; //      the redactor masks nothing in recorded conversations
mod trajectories; //     all checks on recorded conversations
