//! Folds old results to a placeholder. (`mask`)
//!
//! ```text
//! call    read notes.md
//! result  buy milk, eggs and bread, and something for the cat
//! say     that is all
//! ->
//! call    read notes.md
//! result  [1 lines omitted, #1.1]
//! say     that is all
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::fold::policy::{Policy, Stage, Tail};
use crate::model::budget::Strategy;
use crate::model::tokens::Tokens;
use crate::presets::last_resort;

pub(crate) const PASS: Pass = Pass { name: "mask", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for (place, text) in draft.results() {
        let n = text.split('\n').count();
        draft.fold(place, &format!("{n} lines omitted"));
    }
}

impl Policy {
    /// Observation masking: the last ten results stay, older ones become a placeholder.
    pub(crate) fn mask() -> Policy {
        Policy {
            strategy: Strategy::Threshold(0),
            tail: Tail { share: 0, steps: 0, results: 10, ceiling: 1000 },
            stages: vec![Stage::new("normal", vec![PASS]), last_resort()],
            ..Policy::base("mask")
        }
    }
}
