//! Cuts the largest results and arguments to one length, the newest too, so that what was just read or written need not
//! push out all that was known.
//!
//! ```text
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
//! call    bash {"command":"cargo test"}
//! result  … 2 lines
//!         test parser::reads_a_header ... FAILED
//!         test parser::reads_a_row ... ok
//!         thread 'parser::reads_a_header' panicked at src/parser.rs:120:9:
//!         assertion `left == right` failed
//!           left: 3
//!          right: 4
//!         … 2 lines
//!         [condensed from 10 lines, 066395]
//! call    bash {"command":"wc -l src/parser.rs"}
//! result  214 src/parser.rs
//! ```

use super::Pass;
use super::squeeze::squeeze;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Cuts the largest results and arguments to one length.
pub(crate) const PASS: Pass = Pass { name: "level", run };

fn run(draft: &mut Draft<'_>, target: Tokens) {
    // What a text is cut to is an estimate; a second and a third round correct it.
    for _ in 0..3 {
        let over = draft.total() - target;
        if over == Tokens::ZERO {
            return;
        }
        let places = places(draft);
        let most = level(places.iter().map(|(_, cost)| cost.0).collect(), over.0).max(SHORTEST);
        for (place, cost) in places {
            if cost > Tokens(most) {
                squeeze(draft, place, Tokens(most));
            }
        }
    }
}

/// Nothing is cut below this many tokens here.
const SHORTEST: u64 = 64;

/// Results and arguments that may be folded, or folded deeper, and what they cost.
fn places(draft: &Draft<'_>) -> Vec<(Place, Tokens)> {
    let places = draft.places(|place| matches!(place, Place::Result(_) | Place::Arguments(_)));
    places.into_iter().map(|place| (place, draft.place_cost(place))).collect()
}

/// The length to which the largest must be cut for so much to go.
pub(super) fn level(mut costs: Vec<u64>, over: u64) -> u64 {
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0;
    for (i, cost) in costs.iter().enumerate() {
        sum += cost;
        let next = costs.get(i + 1).copied().unwrap_or(0);
        let n = i as u64 + 1;
        let rest = sum.saturating_sub(over) / n;
        if rest >= next {
            return rest;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_give_way_first() {
        assert_eq!(level(vec![10, 100, 20], 50), 50);
        assert_eq!(level(vec![100, 80, 20], 60), 60);
        assert_eq!(level(vec![5, 5], 100), 0);
        assert_eq!(level(vec![], 1), 0);
    }
}
