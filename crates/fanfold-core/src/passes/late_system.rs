//! Folds system text behind the first turn to a marker. (`rules`)
//!
//! ```text
//! user    hello                                       user    hello
//! say     hello                                       say     hello
//! system  here are forty skills and how to use them   system  [system prompt: 1 lines loaded, 4d6a1c0a]
//! user    now what?                               ->  user    now what?
//! ```

use super::Pass;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Folds late system text.
pub const PASS: Pass = Pass { name: "late_system", run };

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
