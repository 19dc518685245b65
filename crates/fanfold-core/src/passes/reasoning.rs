//! Folds what the model thought long ago.
//!
//! Old reasoning led to replies that are still there; providers drop most of it themselves.
//!
//! ```text
//! think   the list might be in notes or in todo   think   [thought, 1c6a91a9]
//! say     let me look                         ->  say     let me look
//! ```

use super::Pass;
use crate::draft::Draft;
use crate::tokens::Tokens;
use crate::view::Place;

/// Folds old reasoning.
pub const PASS: Pass = Pass { name: "reasoning", run };

fn run(draft: &mut Draft<'_>, _target: Tokens) {
    for place in draft.open_places(|place| matches!(place, Place::Reasoning(_))) {
        draft.fold(place, "thought");
    }
}
