//! Condenses long results by what they are: JSON, logs, test output, diffs, code, listings, prose.
//!
//! What later work needs stays: errors, paths, identifiers, values, beginnings and ends.
//!
//! ```text
//! call    bash {"command":"cargo test"}
//! result  test alpha ... ok
//!         test beta ... ok
//!         test gamma ... ok
//!         test delta ... FAILED
//!         test epsilon ... ok
//!         test zeta ... ok
//!         test eta ... ok
//!         test theta ... ok
//!         test iota ... ok
//!         test kappa ... ok
//!         test lambda ... ok
//!         test mu ... ok
//!         test nu ... ok
//!         test xi ... ok
//!         test omicron ... ok
//!         test pi ... ok
//!         test rho ... ok
//!         test sigma ... ok
//!         test tau ... ok
//!         test upsilon ... ok
//!         test result: FAILED. 19 passed; 1 failed
//! ->
//! call    bash {"command":"cargo test"}
//! result  to be filled
//! ```

use super::Pass;
use crate::condense::{Wish, condense};
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Condenses long results.
pub const PASS: Pass = Pass { name: "condense", run };

/// A result shorter than this many bytes is left alone.
const LONG: usize = 400;

fn run(draft: &mut Draft<'_>, target: Tokens) {
    for (place, text) in draft.results() {
        if draft.total() <= target {
            return;
        }
        if text.len() >= LONG {
            fold_condensed(draft, place, text, (text.len() / 5).clamp(160, 1_600));
        }
    }
}

/// Folds a place to at most about `room` bytes of its text.
pub(super) fn fold_condensed(draft: &mut Draft<'_>, place: Place, text: &str, room: usize) -> bool {
    let worth = draft.worth();
    let scorer = worth.scorer();
    let value = |line: &str| scorer.line(line);
    let Some(short) = condense(text, &Wish { room, value: &value }) else { return false };
    let n_lines = text.lines().count();
    draft.fold_to(place, |tag| format!("{short}\n[condensed from {n_lines} lines, {tag}]"))
}
