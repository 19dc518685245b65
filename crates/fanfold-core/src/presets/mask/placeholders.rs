//! Folds old results to a placeholder. (`mask`)
//!
//! ```text
//! call    read notes.md
//! result  buy milk, eggs and bread, and something for the cat
//! say     that is all
//! ->
//! call    read notes.md
//! result  [1 lines omitted, 529884]
//! say     that is all
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "mask", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for (place, text) in draft.results() {
        let n = text.split('\n').count();
        draft.fold(place, &format!("{n} lines omitted"));
    }
}
