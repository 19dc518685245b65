//! Shortens the results of the newest step with a text. The text itself is kept.
//!
//! ```text
//! say     Let me see which test fails.
//! call    bash {"command":"cargo test"}
//! result  running 3 tests
//!         test parser::reads_a_title ... ok
//!         test parser::reads_a_header ... FAILED
//!         test parser::reads_a_row ... ok
//!         thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//!         assertion `left == right` failed
//!           left: 3
//!          right: 4
//!         note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
//!         test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out
//! call    bash {"command":"wc -l src/parser.rs"}
//! result  214 src/parser.rs
//! ->
//! say     Let me see which test fails.
//! call    bash {"command":"cargo test"}
//! result  … 2 lines
//!         test parser::reads_a_header ... FAILED
//!         … 1 passed
//!         thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//!         assertion `left == right` failed
//!           left: 3
//!         … 3 lines
//!         [condensed from 10 lines, #1.1]
//! call    bash {"command":"wc -l src/parser.rs"}
//! result  214 src/parser.rs
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::passes::last_resort::squeeze::squeeze;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "anchor", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let Some(anchor) = draft.anchor() else { return };
    let max_tokens = Tokens(draft.room.0 / 50).max(Tokens(64));
    let is_in_anchor =
        |place: Place| place.entry() == anchor && matches!(place, Place::Result(_) | Place::Arguments(_));
    for place in draft.places(is_in_anchor) {
        if draft.place_cost(place) > max_tokens {
            squeeze(draft, place, max_tokens);
        }
    }
}
