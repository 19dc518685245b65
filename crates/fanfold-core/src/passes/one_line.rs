//! Folds old results to one informative line: tool, target, outcome, size, handle.
//!
//! ```text
//! call    bash {"command":"npm test"}
//! result  all forty-seven tests passed in three seconds, which is about as fast as they ever were on this machine
//! ->
//! call    bash {"command":"npm test"}
//! result  to be filled
//! ```

use super::Pass;
use crate::deed::line_of;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Folds old results to a line.
pub const PASS: Pass = Pass { name: "one_line", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    for place in foldable_results(draft) {
        if draft.total() <= target {
            return;
        }
        let Place::Result(call) = place else { continue };
        let line = line_of(draft.transcript.call(call));
        draft.fold_to(place, |tag| format!("{line} [{tag}]"));
    }
}

/// Results that may be folded, or folded deeper, oldest first.
pub(super) fn foldable_results(draft: &Draft<'_>) -> Vec<Place> {
    let places = draft.calls().into_iter().map(|(id, _)| Place::Result(id));
    places.filter(|place| draft.may_fold(*place)).collect()
}
