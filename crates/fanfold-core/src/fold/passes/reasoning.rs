//! Folds old reasoning.
//!
//! Old reasoning led to replies that are still visible, and providers drop most of it themselves. Signed or encrypted
//! reasoning cannot be changed and is only folded with its step.
//!
//! ```text
//! think   The list might be in notes.md, or in todo.md, which was read before. I will look into notes.md first.
//! say     Let me look.
//! ->
//! think   [thought, #1r]
//! say     Let me look.
//! ```

use crate::fold::draft::Draft;
use crate::fold::passes::Pass;
use crate::model::location::Place;
use crate::model::tokens::Tokens;
use crate::model::transcript::{Entry, EntryId};

pub(crate) const PASS: Pass = Pass { name: "reasoning", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    let has_thoughts = |entry: &Entry| entry.step().is_some_and(|step| !step.reasoning.is_empty());
    let thoughtful: Vec<EntryId> =
        draft.in_view().filter(|(_, entry)| has_thoughts(entry)).map(|(id, _)| id).collect();
    for id in thoughtful {
        let place = Place::Reasoning(id);
        if draft.ledger.fold_at(place).is_none() {
            draft.fold(place, "thought");
        }
    }
}
