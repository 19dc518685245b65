//! Folds system text after the first turn to a marker. (`rules`)
//!
//! ```text
//! user    hello
//! say     hello
//! system  Here are forty skills and how to use them: baking, boating, bookkeeping, and so on.
//! user    now what?
//! ->
//! user    hello
//! say     hello
//! system  [system prompt: 1 lines loaded, #e3]
//! user    now what?
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;

pub(crate) const PASS: Pass = Pass { name: "late_system", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for place in draft.places(|place| matches!(place, Place::Text(_))) {
        let entry = draft.transcript.entry(place.entry());
        let Some(prompt) = entry.prompt().filter(|_| entry.is_system()) else { continue };
        if draft.ledger.fold_at(place).is_none() {
            let n = prompt.body.as_str().lines().count();
            draft.fold(place, &format!("system prompt: {n} lines loaded"));
        }
    }
}
