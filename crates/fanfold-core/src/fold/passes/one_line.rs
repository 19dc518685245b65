//! Folds old results to one line: tool, target, outcome, size, handle.
//!
//! ```text
//! call    bash {"command":"npm test"}
//! result  > shop@1.4.0 test
//!         > vitest run
//!         Test Files  9 passed (9)
//!         Tests  47 passed (47)
//!         Duration  3.18s
//! ->
//! call    bash {"command":"npm test"}
//! result  [bash] ran `npm test` → 47 passed, 5 lines [#1.1]
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "one_line", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    for place in foldable_results(draft) {
        if draft.total() <= target {
            return;
        }
        fold_to_line(draft, place);
    }
}

/// Folds a result to the description of its call.
pub(crate) fn fold_to_line(draft: &mut Draft<'_>, place: Place) {
    let Place::Result(call) = place else { return };
    let (line, _) = draft.describe_with_failure(call);
    draft.fold_to(place, |tag| format!("{line} [{tag}]"));
}

/// Results that may be folded or folded further, oldest first.
pub(crate) fn foldable_results(draft: &Draft<'_>) -> Vec<Place> {
    let places = draft.calls().into_iter().map(|(id, _)| Place::Result(id));
    places.filter(|place| draft.may_fold(*place)).collect()
}
