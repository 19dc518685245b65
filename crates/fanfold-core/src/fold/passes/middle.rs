//! Folds the results of the middle zone: its steps keep the text and the arguments of the agent.
//!
//! ```text
//! say     The height is one too small, so I remove the subtraction.
//! call    bash {"command":"npm test"}
//! result  > shop@1.4.0 test
//!         > vitest run
//!          ✓ tests/cart.test.ts (12 tests) 41ms
//!          ✓ tests/prices.test.ts (9 tests) 22ms
//!          ✓ tests/stock.test.ts (17 tests) 63ms
//!          ✓ tests/orders.test.ts (9 tests) 35ms
//!         Test Files  9 passed (9)
//!         Tests  47 passed (47)
//!         Duration  3.18s
//! ->
//! say     The height is one too small, so I remove the subtraction.
//! call    bash {"command":"npm test"}
//! result  …
//!         Duration  3.18s
//!         [47 passed, condensed from 9 lines, #1.1]
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::passes::last_resort::squeeze::fold_to_gist;
use crate::fold::passes::one_line::{fold_to_line, foldable_results};
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "middle", run };

/// The share of the room that one result may take, in per mille, and the least that it may take.
const SHARE: u32 = 30;
const LEAST: Tokens = Tokens(60);

fn run(draft: &mut Draft<'_>, _: Tokens) {
    let max_tokens = draft.room.permille(SHARE).max(LEAST);
    for place in foldable_results(draft) {
        let Place::Result(call) = place else { continue };
        let is_long = draft.is_in_middle(place.entry()) && draft.place_cost(place) > max_tokens;
        let outcome = draft.outcome(call);
        if is_long && draft.has_whole(place) && !fold_to_gist(draft, place, call, max_tokens, &outcome) {
            fold_to_line(draft, place);
        }
    }
}
