//! Folds what the model thought long ago.
//!
//! Old reasoning led to replies that are still there; providers drop most of it themselves.
//!
//! ```text
//! think   The list might be in notes.md, or in todo.md, which was read before. I will look into notes.md first.
//! say     Let me look.
//! ->
//! think   [thought, ca0b17a8]
//! say     Let me look.
//! ```

use super::Pass;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Folds old reasoning.
pub(crate) const PASS: Pass = Pass { name: "reasoning", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for place in draft.open_places(|place| matches!(place, Place::Reasoning(_))) {
        draft.fold(place, "thought");
    }
}
